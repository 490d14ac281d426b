// SPDX-License-Identifier: Apache-2.0
#include "files/atomic_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "scratch.h"

namespace penstock::files {
namespace {

std::size_t entries_of(const std::string& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(AtomicFile, AppearsWholeOnCommit) {
  const Scratch scratch;
  scratch.write("x", "old");
  AtomicFile file(scratch / "x");
  file.write("ne");
  file.write("w");
  EXPECT_EQ(scratch.read("x"), "old");
  file.commit();
  EXPECT_EQ(scratch.read("x"), "new");
  EXPECT_EQ(entries_of(scratch.path()), 1u);
}

TEST(AtomicFile, LeavesTheOldFileWithoutCommit) {
  const Scratch scratch;
  scratch.write("x", "old");
  { AtomicFile(scratch / "x").write("new"); }
  EXPECT_EQ(scratch.read("x"), "old");
  EXPECT_EQ(entries_of(scratch.path()), 1u);
}

TEST(AtomicFile, NamesAPathThatCannotBeWritten) {
  const Scratch scratch;
  const std::string failed = failure<RunError>([&] { write_atomically(scratch / "none/x", "text"); });
  EXPECT_NE(failed.find("none/x cannot be written: No such file"), std::string::npos) << failed;
  std::filesystem::create_directories(scratch / "taken/inside");
  EXPECT_NE(failure<RunError>([&] { write_atomically(scratch / "taken", "text"); }), "");
  EXPECT_EQ(entries_of(scratch.path()), 1u) << "the temporary file stayed";
}

TEST(AtomicFile, HasTheLongestNameThatFilesMayHave) {
  const Scratch scratch;
  const std::string longest(255, 'a');
  write_atomically(scratch / longest, "text");
  EXPECT_EQ(scratch.read(longest), "text");
  const std::string failed = failure<RunError>([&] { write_atomically(scratch / (longest + "a"), "text"); });
  EXPECT_NE(failed.find("File name too long"), std::string::npos) << failed;
}

TEST(AtomicFile, OfALongNameIsNotThatOfAnother) {
  const Scratch scratch;
  const std::string prefix(250, 'a');
  {
    AtomicFile one(scratch / (prefix + ".bin")), other(scratch / (prefix + ".idx"));
    EXPECT_EQ(entries_of(scratch.path()), 2u);
  }
  EXPECT_EQ(entries_of(scratch.path()), 0u);
}

TEST(AtomicFile, IsTheOneThatALinkNames) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "there");
  std::filesystem::create_symlink("there/x", scratch / "link");
  for (const std::string text : {"first", "second"}) {
    write_atomically(scratch / "link", text);
    EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
    EXPECT_EQ(scratch.read("there/x"), text);
  }
  EXPECT_EQ(entries_of(scratch / "there"), 1u);
}

// Such as /dev/null, which root could replace.
TEST(AtomicFile, ReplacesNothingButAFile) {
  const Scratch scratch;
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(scratch / "pipe", scratch / "link");
  for (const char* name : {"pipe", "link"})
    EXPECT_EQ(failure<RunError>([&] { AtomicFile{scratch / name}; }),
              scratch / "pipe" + " is not a regular file, and would be replaced by one");
  EXPECT_TRUE(std::filesystem::is_fifo(scratch / "pipe"));
  EXPECT_EQ(entries_of(scratch / "."), 2u);
}

TEST(AtomicFile, NamesTheBytesWantedWhenTheDiskIsFull) {
  const Scratch scratch;
  scratch.write("x", "old");
  // A limit on the size of files is the full disk that a test can have: the write is cut short, the next one
  // fails.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string failed =
      failure<RunError>([&] { write_atomically(scratch / "x", std::string(1500, 'a')); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_NE(failed.find("500 bytes wanted"), std::string::npos) << failed;
  EXPECT_EQ(scratch.read("x"), "old");
  EXPECT_EQ(entries_of(scratch.path()), 1u);
}

}  // namespace
}  // namespace penstock::files
