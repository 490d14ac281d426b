// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

// As files that are not trusted may hold them.
TEST(Units, ArePrintedAtTheEndsOfTheirTypes) {
  EXPECT_EQ(print_bytes(std::numeric_limits<Bytes>::max()), "8589934592 GiB");
  EXPECT_EQ(print_bytes(std::numeric_limits<Bytes>::min()), "-8589934592 GiB");
  EXPECT_EQ(print_bytes(-2048), "-2.00 KiB");
  EXPECT_EQ(print_seconds(1e300), "1e+300 s");
  EXPECT_EQ(print_seconds(9.9e14), "275000000000 h 00 min");
  EXPECT_EQ(print_seconds(-7325), "-2 h 02 min");
}

// A number alone may be meant in any unit.
TEST(Units, SizesAreReadWithTheirUnitAlone) {
  EXPECT_EQ(parse_bytes("6 GiB"), 6 * GiB);
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 MiB"), 1536 * KiB);
  EXPECT_EQ(parse_bytes("512 B"), 512);
  for (const char* wrong : {"123", "-1 GiB", "GiB", "6 gib", "inf GiB", ""})
    EXPECT_THROW(parse_bytes(wrong), InputError) << wrong;
}

TEST(Text, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\tb\x7F\x1B[2J\n"), "a\\x09b\\x7f\\x1b[2J\\x0a");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m\xC2\xA0\xC3\xA9\xFF"),
            "\\xc2\\x9b31m\xC2\xA0\xC3\xA9\\xff");
  EXPECT_EQ(printable_lines("one\x1B\n\ttwo\n\n"), "one\\x1b\n\ttwo\n\n");
  EXPECT_EQ(printable_lines(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Text, CountsOneOfAThingInTheSingular) {
  EXPECT_EQ(counted(1, "micro-batch"), "1 micro-batch");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(0, "step"), "0 steps");
}

TEST(Text, SmallNumbersKeepTwoDigits) {
  EXPECT_EQ(two_digits(12.345, 1), "12.3");
  EXPECT_EQ(two_digits(1.25, 2), "1.25");
  EXPECT_EQ(two_digits(0.99, 1), "0.99");
  EXPECT_EQ(two_digits(1, 1), "1.0");
  EXPECT_EQ(two_digits(0.0123, 1), "0.012");
  EXPECT_EQ(two_digits(-0.0123, 1), "-0.012");
  EXPECT_EQ(number(-0.04, 1), "0.0");
  EXPECT_EQ(number(-0.06, 1), "-0.1");
  EXPECT_EQ(two_digits(3e-6, 2), "0.0000030");
  EXPECT_EQ(two_digits(0, 1), "0.0");
}

TEST(Text, IntegersAreReadWholeWithAMinusAlone) {
  EXPECT_EQ(parse_integer("-5").value_or(0), -5);
  for (const char* wrong : {"", "+5", " 5", "5 ", "5.0", "99999999999999999999"})
    EXPECT_FALSE(parse_integer(wrong).has_value()) << wrong;
}

TEST(Text, OnlyWordsThatAreNearAreProposed) {
  const std::vector<std::string_view> words{"train", "plan", "kv"};
  EXPECT_EQ(did_you_mean("trian", words), "; did you mean \"train\"?");
  EXPECT_EQ(did_you_mean("PLAN", words, ""), "; did you mean plan?");
  EXPECT_EQ(did_you_mean("k", words, ""), "; did you mean kv?");
  for (const char* far : {"", "x", "bench", "a-much-longer-word"}) {
    EXPECT_EQ(did_you_mean(far, words), "") << far;
    EXPECT_EQ(instead_of(far, words, ""), "; expected one of train, plan, kv") << far;
  }
}

}  // namespace
}  // namespace penstock
