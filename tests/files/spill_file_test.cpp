// SPDX-License-Identifier: Apache-2.0
#include "files/spill_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "failure.h"
#include "files/file_system.h"
#include "scratch.h"

namespace penstock::files {
namespace {

std::vector<std::byte> bytes(std::size_t count, int seed) {
  std::vector<std::byte> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>(i * 7 + seed);
  return made;
}

TEST(SpillFile, GivesBackWhatWasPutThere) {
  const Scratch scratch;
  const SpillFile file(scratch.path(), "spilled", 1 << 20);
  const auto first = bytes(300'000, 1), second = bytes(77, 2);
  file.write(500'000, first);
  file.write(3, second);
  std::vector<std::byte> got(first.size()), other(second.size());
  file.read(500'000, got);
  file.read(3, other);
  EXPECT_EQ(got, first);
  EXPECT_EQ(other, second);
}

TEST(SpillFile, HasNoNameThatCouldBeLeftBehind) {
  const Scratch scratch;
  const SpillFile file(scratch.path(), "spilled", 1 << 20);
  file.write(0, bytes(1000, 1));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(SpillFile, SaysWhichDirectoryIsMissing) {
  const Scratch scratch;
  const std::string message = failure<RunError>([&] { SpillFile(scratch / "none", scratch / "none/x", 12); });
  EXPECT_EQ(message, (scratch / "none/x") + " cannot be made: 12 bytes wanted: No such file or directory");
}

TEST(SpillFile, SaysWhatCannotBeReadBack) {
  const Scratch scratch;
  const SpillFile file(scratch.path(), "spilled", 0);
  std::vector<std::byte> got(10);
  EXPECT_EQ(failure<RunError>([&] { file.read(0, got); }),
            "spilled cannot be read back: 10 bytes wanted: Input/output error");
}

}  // namespace
}  // namespace penstock::files
