// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

// As files that are not trusted may hold them.
TEST(Units, ArePrintedAtTheEndsOfTheirTypes) {
  EXPECT_EQ(print_bytes(std::numeric_limits<Bytes>::max()), "8589934592 GiB");
  EXPECT_EQ(print_bytes(std::numeric_limits<Bytes>::min()), "-8589934592 GiB");
  EXPECT_EQ(print_bytes(-2048), "-2.00 KiB");
  EXPECT_EQ(print_seconds(1e300), "277777777777 h 46 min");
  EXPECT_EQ(print_seconds(-7325), "-2 h 02 min");
}

}  // namespace
}  // namespace penstock
