// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/loss_mask.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "failure.h"
#include "scratch.h"

namespace penstock::files {
namespace {

// The kernel maps a file of one page right below the page that was mapped before it.
TEST(LossMask, OfWholePagesIsReadToItsEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Scratch scratch;
  scratch.write("text.mask", std::string(page, 1));
  void* const unreadable = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unreadable, MAP_FAILED);
  const LossMask mask(scratch / "text", static_cast<std::int64_t>(page));
  std::vector<char> in_loss(page, 0);
  mask.read(0, in_loss);
  munmap(unreadable, page);
  EXPECT_EQ(std::ranges::count(in_loss, 1), std::ssize(in_loss));
}

TEST(LossMask, NamesAByteThatIsNeither) {
  Scratch scratch;
  scratch.write("text.mask", std::string("\1\0\2\1", 4));
  const LossMask mask(scratch / "text", 4);
  std::vector<char> in_loss(3);
  EXPECT_EQ(failure<InputError>([&] { mask.read(1, in_loss); }),
            (scratch / "text.mask") + ": byte 2 is 2; expected 0 or 1");
}

}  // namespace
}  // namespace penstock::files
