// SPDX-License-Identifier: Apache-2.0
// The run directory of a resumed run, as rank 0 takes it.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>

#include "cli/train/prepare.h"
#include "failure.h"
#include "files/atomic_file.h"
#include "files/file_system.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

// A disk without room for as long as `ballast` exists.
class FilledDisk : public files::FileSystem {
 public:
  explicit FilledDisk(std::string ballast) : ballast_(std::move(ballast)), replaced_(*this) {}
  ssize_t write(int descriptor, std::span<const std::byte> bytes) override {
    if (!fs::exists(ballast_)) return FileSystem::write(descriptor, bytes);
    errno = ENOSPC;
    return -1;
  }

 private:
  std::string ballast_;
  files::ReplacedFileSystem replaced_;
};

// What ranks of several processes write next, to see whether all have one directory, must find room.
TEST(ResumedDirectory, HasRoomThoughAPartialCheckpointFilledTheDisk) {
  const Scratch scratch;
  const std::string checkpoints = scratch / "run/checkpoints/", partial = checkpoints + "step-000004.partial";
  for (const std::string& path : {checkpoints + "step-000002", partial}) fs::create_directories(path);
  scratch.write("run/run.toml", "x");
  const FilledDisk disk(partial);
  const auto write = [&] { files::write_atomically(scratch / "run/token-0", "x"); };
  EXPECT_NE(failure<RunError>(write), "");
  Prepared prepared;
  prepared.run.options.output.dir = scratch / "run";
  const TrainFlags resumes{.source = {.file = "run.toml", .overrides = {}, .resumes = true}};
  check_directory(resumes, prepared);
  EXPECT_TRUE(fs::exists(partial)) << "a dry run changes nothing";
  open_directory(resumes, prepared);
  EXPECT_EQ(failure<RunError>(write), "");
  EXPECT_TRUE(fs::exists(checkpoints + "step-000002"));
}

}  // namespace
}  // namespace penstock::cli
