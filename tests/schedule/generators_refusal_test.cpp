// SPDX-License-Identifier: Apache-2.0
// Requests that are refused, with the constraint and what would be right.
#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/generators/generator.h"

namespace penstock::schedule {
namespace {

std::string generator_refusal(std::string_view name, const Request& asked) {
  try {
    generate(name, asked);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(GeneratorRefusal, NamesTheNearestSchedule) {
  EXPECT_EQ(generator_refusal("slimpip", request(2, 2)),
            "schedule: \"slimpip\" is unknown; did you mean \"slimpipe\"?");
  EXPECT_EQ(generator_refusal("1F1B", request(2, 2)),
            "schedule: \"1F1B\" is unknown; did you mean \"1f1b\"?");
}

TEST(GeneratorRefusal, WantsPositiveNumbers) {
  EXPECT_EQ(generator_refusal("1f1b", {0, {1}}), "pipeline size (p) must be at least 1, got 0");
  EXPECT_EQ(generator_refusal("1f1b", {2, {}}), "micro-batches (m) must be at least 1, got 0");
  EXPECT_EQ(generator_refusal("slimpipe", {2, {4, -3}}), "slices (n) must be at least 1, got -3");
  EXPECT_EQ(generator_refusal("slimpipe", {2, {4}, -1}), "chunks (v) must be at least 1, got -1");
  EXPECT_EQ(generator_refusal("slimpipe", {2, {4}, 1, -2}),
            "slices per group must be at least 1, or 0 for automatic, got -2");
  EXPECT_THROW(request(2, 0), InputError);
  EXPECT_THROW(request(2, -7), InputError);
}

TEST(GeneratorRefusal, NamesTheSlicedSiblingOfUnslicedSchedules) {
  EXPECT_EQ(generator_refusal("1f1b", request(2, 2, 4)),
            "1f1b does not slice micro-batches: n = 4; use n = 1, or seq1f1b or slimpipe");
  for (const Generator& generator : generators()) {
    if (generator.sliced_sibling.empty()) continue;
    EXPECT_NE(generator_refusal(generator.name, request(2, 2, 3)).find(generator.sliced_sibling),
              std::string::npos);
  }
}

TEST(GeneratorRefusal, NamesTheChunksThatAScheduleNeeds) {
  EXPECT_EQ(generator_refusal("zb-v", request(4, 8, 1, 3)), "zb-v needs v = 2, got 3");
  EXPECT_EQ(generator_refusal("gpipe", request(4, 8, 1, 2)), "gpipe needs v = 1, got 2");
}

TEST(GeneratorRefusal, NamesTheNearestMicroBatchesOfInterleaved) {
  EXPECT_EQ(generator_refusal("interleaved", request(3, 7)),
            "interleaved needs m divisible by its rounds: m = 7, p = 3, 2 rounds; nearest 6 or 8");
  EXPECT_EQ(generator_refusal("seq1f1b-interleaved", request(8, 5, 4)),
            "seq1f1b-interleaved needs m divisible by its rounds: m = 5, p = 8, 2 rounds; nearest 4 or 6");
}

TEST(GeneratorRefusal, NamesTheLeastSlicesAndTheNearestGroupsOfInterleavedSlimpipe) {
  EXPECT_EQ(generator_refusal("slimpipe", request(8, 2, 4, 2)),
            "slimpipe with v > 1 needs n >= p in every micro-batch: n = 4, p = 8; nearest n = 8, or v = 1");
  EXPECT_EQ(generator_refusal("slimpipe", {4, {16}, 2, 6}),
            "slimpipe needs a group that divides n and is >= p: group = 6, n = 16, p = 4; nearest 4 or 8");
  EXPECT_EQ(generator_refusal("slimpipe", {4, {16}, 2, 2}),
            "slimpipe needs a group that divides n and is >= p: group = 2, n = 16, p = 4; nearest 4");
  EXPECT_EQ(generator_refusal("slimpipe", {4, {8, 8}, 2, 2'147'483'647}),  // at once, however far away
            "slimpipe needs a group that divides n and is >= p: group = 2147483647, n = 8, p = 4; nearest 8");
}

TEST(GeneratorRefusal, WantsNoGroupWhereThereAreNone) {
  EXPECT_EQ(
      generator_refusal("slimpipe", {2, {8}, 1, 4}),
      "only slimpipe with v > 1 has groups of slices: group = 4 with slimpipe, v = 1; leave the group out");
  EXPECT_EQ(generator_refusal("seq1f1b-interleaved", {2, {8}, 2, 4}),
            "only slimpipe with v > 1 has groups of slices: group = 4 with seq1f1b-interleaved, v = 2; leave "
            "the group out");
  EXPECT_EQ(generator_refusal("slimpipe", {2, {8}, 2, 4}), "accepted");
}

TEST(GeneratorRefusal, NamesTheNearestEvenSizeOfDualpipe) {
  EXPECT_EQ(generator_refusal("dualpipe", request(3, 8)), "dualpipe needs an even p, got 3; nearest 2 or 4");
  EXPECT_EQ(generator_refusal("dualpipe", request(1, 8)), "dualpipe needs an even p, got 1; nearest 2");
}

TEST(GeneratorRefusal, StopsBeforeTheListOutgrowsTheMachine) {
  EXPECT_NE(generator_refusal("1f1b", request(1'000'000, 1'000'000)).find("at most 50000000 are possible"),
            std::string::npos);
  EXPECT_EQ(generator_refusal("slimpipe", request(2, 1, 40'000)),
            "slices (n) must be at most 32767, got 40000");
}

// The limits of text.h.
TEST(GeneratorRefusal, StopsAtSizesThatCouldNotBeReadBack) {
  EXPECT_EQ(generator_refusal("gpipe", request(65'537, 1)),
            "pipeline size (p) must be at most 65536, got 65537");
  EXPECT_EQ(generator_refusal("interleaved", request(2048, 1, 1, 513)),
            "stages (p·v) must be at most 1048576, got 1050624");
  EXPECT_EQ(generator_refusal("gpipe", {1, std::vector<int>(1'048'577, 1)}),
            "micro-batches (m) must be at most 1048576, got 1048577");
  EXPECT_THROW(request(1, 1'048'577), InputError);
}

}  // namespace
}  // namespace penstock::schedule
