// SPDX-License-Identifier: Apache-2.0
#include "files/parted_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "scratch.h"

namespace penstock::files {
namespace {

TEST(PartedFile, IsWholeWhateverTheOrderOfThePartsAndOfTheWriters) {
  const Scratch scratch;
  scratch.write("x", "something older and longer");
  PartedFile first(scratch / "x", 10);
  first.write(6, "6789");
  PartedFile second(scratch / "x", 10);
  second.write(0, "01");
  first.write(4, "45");
  second.write(2, "23");
  first.flush();
  second.flush();
  EXPECT_EQ(scratch.read("x"), "0123456789");
}

TEST(PartedFile, NamesThePathAndTheBytesOfEveryFailure) {
  const Scratch scratch;
  const auto fails_at = [&](int call) {
    const FaultyFiles faulty(call);
    return failure<RunError>([&] {
      PartedFile file(scratch / "x", 10);
      file.write(6, "6789");
      file.flush();
    });
  };
  const std::string path = scratch / "x";
  EXPECT_EQ(fails_at(0), path + " cannot be written: No space left on device");
  EXPECT_EQ(fails_at(1), path + " cannot be written: 10 bytes wanted: No space left on device");
  EXPECT_EQ(fails_at(2), path + " cannot be written: 4 bytes wanted: No space left on device");
  EXPECT_EQ(fails_at(3), path + " cannot be flushed: No space left on device");
  EXPECT_EQ(fails_at(4), "");
}

TEST(PartedFile, LeavesThePageCacheAfterEveryWindowAndTellsWhatThatLost) {
  const Scratch scratch;
  PartedFile file(scratch / "x", 10, 4);
  file.write(7, "789");
  file.write(0, "0123456");
  file.flush();
  EXPECT_EQ(scratch.read("x"), "0123456789");

  constexpr int kBefore = 3;  // open, resize, write
  const FaultyFiles faulty(kBefore, EIO);
  EXPECT_EQ(failure<RunError>([&] { PartedFile(scratch / "y", 10, 4).write(0, "0123456789"); }),
            scratch / "y" + " cannot be written: 6 bytes wanted: Input/output error");
}

TEST(PartedFile, IsWrittenWhereWritesAreShort) {
  const Scratch scratch;
  FaultyFiles slow;
  slow.write_at_most(3);
  PartedFile(scratch / "x", 12).write(1, "longer text");
  EXPECT_EQ(scratch.read("x"), std::string(1, '\0') + "longer text");
}

}  // namespace
}  // namespace penstock::files
