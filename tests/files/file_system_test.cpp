// SPDX-License-Identifier: Apache-2.0
#include "files/file_system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "scratch.h"

namespace penstock::files {
namespace {

namespace fs = std::filesystem;

int calls_of_a_write(const Scratch& scratch) {
  const FaultyFiles counting;
  write_atomically(scratch / "x", "old");
  return counting.calls();
}

TEST(AtomicFile, LeavesTheOldFileWhicheverCallFails) {
  const Scratch scratch;
  const int calls = calls_of_a_write(scratch);
  for (int at = 0; at < calls; ++at) {
    write_atomically(scratch / "x", "old");
    std::string failed;
    {
      const FaultyFiles faulty(at);
      failed = failure<RunError>([&] { write_atomically(scratch / "x", "newer"); });
    }
    const bool renamed = at == calls - 1;  // all that failed is the flush of the directory
    EXPECT_EQ(failed.empty(), renamed) << at;
    EXPECT_EQ(scratch.read("x"), renamed ? "newer" : "old") << at;
    EXPECT_TRUE(renamed || failed.find(scratch / "x") != std::string::npos) << failed;
    EXPECT_TRUE(renamed || failed.find("No space left on device") != std::string::npos) << failed;
  }
}

TEST(AtomicFile, NamesTheBytesThatWereStillWanted) {
  const Scratch scratch;
  FaultyFiles faulty(3);
  faulty.write_at_most(10);
  const std::string failed =
      failure<RunError>([&] { write_atomically(scratch / "x", std::string(35, 'a')); });
  EXPECT_NE(failed.find("15 bytes wanted"), std::string::npos) << failed;
}

TEST(AtomicFile, IsWholeThoughTheDiskTakesAFewBytesAtATime) {
  const Scratch scratch;
  FaultyFiles slow;
  slow.write_at_most(3);
  write_atomically(scratch / "x", "a longer text");
  EXPECT_EQ(scratch.read("x"), "a longer text");
}

TEST(AtomicFile, NamesADirectoryThatCannotBeWritten) {
  const Scratch scratch;
  const FaultyFiles faulty(0, EROFS);
  const std::string failed = failure<RunError>([&] { write_atomically(scratch / "x", "new"); });
  EXPECT_NE(failed.find("Read-only file system"), std::string::npos) << failed;
}

TEST(Directory, IsPublishedUnlessSomethingHasItsName) {
  const Scratch scratch;
  make_directory(scratch / "new");
  make_directory(scratch / "new");
  scratch.write("new/file", "x");
  publish_directory(scratch / "new", scratch / "final");
  EXPECT_EQ(scratch.read("final/file"), "x");
  make_directory(scratch / "other");
  EXPECT_NE(failure<RunError>([&] { publish_directory(scratch / "other", scratch / "final"); }), "");
  EXPECT_EQ(scratch.read("final/file"), "x");
  EXPECT_NE(failure<RunError>([&] { make_directory(scratch / "none/new"); }), "");
}

TEST(Directory, IsRemovedWithAllThatIsInIt) {
  const Scratch scratch;
  fs::create_directories(scratch / "a/b/c");
  scratch.write("a/b/file", "x");
  scratch.write("outside", "x");
  fs::create_symlink(scratch / "outside", scratch / "a/link");
  remove_all(scratch / "a");
  EXPECT_FALSE(fs::exists(scratch / "a"));
  EXPECT_TRUE(fs::exists(scratch / "outside"));
}

// Where a directory below cannot be opened, the rest is removed, and a destructor does not throw.
TEST(Directory, IsRemovedWithFewDescriptors) {
  const Scratch scratch;
  fs::create_directories(scratch / "a/b/c");
  scratch.write("a/b/c/file", "x");
  const int free_descriptor = dup(STDERR_FILENO);
  close(free_descriptor);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const int descriptors : {0, 1}) {
    const rlimit few{static_cast<rlim_t>(free_descriptor + descriptors), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_NO_THROW(remove_all(scratch / "a"));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(fs::exists(scratch / "a/b/c/file"), descriptors == 0);
  }
  EXPECT_FALSE(fs::exists(scratch / "a"));
}

// The value that xxHash's own program prints for these bytes.
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum_text(checksum(std::string_view(""))), "2d06800538d394c2");
  EXPECT_EQ(checksum_text(0x1fu), "000000000000001f");
  EXPECT_EQ(parse_checksum("2d06800538d394c2"), 0x2d06800538d394c2u);
  for (const char* wrong : {"", "1f", "2d06800538d394cz", " 2d06800538d394c", "2d06800538d394c22"}) {
    EXPECT_FALSE(parse_checksum(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace penstock::files
