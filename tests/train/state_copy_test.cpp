// SPDX-License-Identifier: Apache-2.0
// One copy of a rank's state, and the number by which a run knows its own.
#include "train/checkpoint/state_copy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/single.h"
#include "failure.h"
#include "files/run_files.h"
#include "scratch.h"
#include "train/checkpoint/run_number.h"
#include "train/copied_run.h"

namespace penstock::testing {
namespace {

train::StateCopy some_copy() {
  train::StateCopy copy{.run = kNumber,
                        .start = "00000000000000ab",
                        .step = 7,
                        .ranks = 4,
                        .rank = 2,
                        .checkpoint = "{}",
                        .tensors = {{"a", files::ElementType::F32, {6, 10}, {{3, 2, 10, 6}}},
                                    {"b", files::ElementType::F64, {9}, {{0, 4, 0, 1}, {5, 1, 2, 2}}}},
                        .sum = 99};
  return copy;
}

TEST(RunNumber, StaysUntilItIsForgottenOrRenewed) {
  const Scratch scratch;
  const auto alone = comm::make_single();
  const comm::World world(*alone);
  EXPECT_EQ(train::run_number(scratch.path(), world), "");
  const std::string number = train::renew_run_number(scratch.path(), world);
  EXPECT_EQ(number.size(), 16u);
  EXPECT_EQ(train::run_number(scratch.path(), world), number);
  train::forget_run_number(scratch.path());
  EXPECT_EQ(train::run_number(scratch.path(), world), "");
  EXPECT_NE(train::renew_run_number(scratch.path(), world), number);
  scratch.write(files::kNumber, "noise");
  EXPECT_EQ(train::run_number(scratch.path(), world), "");
}

TEST(StateCopy, ReadsWhatItWrites) {
  const train::StateCopy copy = some_copy();
  EXPECT_EQ(train::parse_state_copy(to_json(copy), "x"), copy);
  EXPECT_EQ(copy.bytes(), 12 * 4 + 6 * 8);
  EXPECT_EQ(copy.tensors[0].whole_bytes(), 240);
}

TEST(StateCopy, RefusesRangesThatAreNotOfTheTensor) {
  const std::vector<std::vector<train::RangeRun>> bad{{{0, 11, 0, 1}},               // too long
                                                      {{8, 3, 0, 1}},                // beyond the end
                                                      {{0, 2, 1, 2}},                // over themselves
                                                      {{4, 2, 0, 1}, {5, 1, 0, 1}},  // over one another
                                                      {{0, 1, 5, 3}},  // the last beyond the end
                                                      {{0, 1, 1L << 47, 1L << 40}},  // beyond any number
                                                      {{-1, 1, 0, 1}},
                                                      {{0, 0, 0, 1}},
                                                      {{0, 1, 0, 0}}};
  for (const auto& runs : bad) {
    train::StateCopy copy = some_copy();
    copy.tensors = {{"a", files::ElementType::F32, {10}, runs}};
    EXPECT_NE(failure<InputError>([&] { train::parse_state_copy(to_json(copy), "x"); }).find("x: "),
              std::string::npos);
  }
  EXPECT_NE(failure<InputError>([] { train::parse_state_copy("[", "x"); }), "");
  EXPECT_NE(failure<InputError>([] { train::parse_state_copy("{}", "x"); }).find("\"run\" is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
