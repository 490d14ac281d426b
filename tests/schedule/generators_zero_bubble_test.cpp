// SPDX-License-Identifier: Apache-2.0
// The laws of the schedules that split the backward, at unit costs F = I = W = 1, B = 2. A bubble of the step
// counts a device's idle time up to the makespan, a bubble of the span only that between its first and its
// last action.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/unit_times.h"

namespace penstock::schedule {
namespace {

constexpr int kCounts[] = {1, 2, 3, 4, 8};
constexpr int kBatches[] = {1, 2, 3, 8, 16};

struct Case {
  int p, m;
  UnitTimes times;

  int peak() const { return *std::max_element(times.peak.begin(), times.peak.end()); }
};

std::vector<Case> cases(const char* name) {
  std::vector<Case> all;
  for (const int p : kCounts) {
    for (const int m : kBatches) all.push_back({p, m, unit_times(generate(name, request(p, m)))});
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << "p " << c.p << " m " << c.m; }

// Bound on the step, reached exactly.
TEST(ZeroBubbleGenerators, ZbH1KeepsPMicroBatchesUntilTheirWAndHasItsBubbleOfTheStep) {
  for (const Case& c : cases("zb-h1")) {
    EXPECT_EQ(c.times.step_idle(), c.p - 1 + std::max(0, c.p - c.m)) << c;
    for (const int peak : c.times.peak) EXPECT_EQ(peak, std::min(c.m, c.p)) << c;
  }
}

// Bound on the span, reached exactly.
TEST(ZeroBubbleGenerators, ZbH2KeepsTwicePLessOneUntilTheirWAndHasItsBubbleOfTheSpan) {
  for (const Case& c : cases("zb-h2")) {
    EXPECT_EQ(c.times.span_idle(), std::max(0, 2 * c.p - 1 - c.m)) << c;
    for (const int peak : c.times.peak) EXPECT_EQ(peak, std::min(c.m, 2 * c.p - 1)) << c;
  }
}

// Bound on the span: 0 once the V is full, which takes 2p-1 micro-batches; before that two units for each
// that is missing.
TEST(ZeroBubbleGenerators, ZbVHasNoBubbleInTheSpanOnceTheVIsFull) {
  for (const Case& c : cases("zb-v")) {
    EXPECT_LE(c.times.span_idle(), 2 * std::max(0, 2 * c.p - 1 - c.m)) << c;
    EXPECT_LE(c.peak(), 2 * c.p) << c;
  }
}

// A single micro-batch takes 4p chunks and one W and leaves 4p-5 idle units whatever the schedule; each
// further one may fill four of them. So the bounds of the paper, which are for m >= p, cannot hold before
// that.
int idle_of_few(const Case& c) { return 4 * c.p - 1 - 4 * c.m; }

// Bound on the step: 3p-7 (even p >= 4), 3p-4 (odd p); 1 for p = 2, of which the paper does not speak.
TEST(ZeroBubbleGenerators, VHalfHasHalfTheMemoryAndHalfTheBubble) {
  for (const Case& c : cases("v-half")) {
    const int bound = c.p == 1 ? 0 : c.p == 2 ? 1 : c.p % 2 == 0 ? 3 * c.p - 7 : 3 * c.p - 4;
    EXPECT_LE(c.times.step_idle(), std::max(bound, idle_of_few(c))) << c;
    EXPECT_LE(c.peak(), 2 * (c.p / 2 + 1)) << c;
  }
}

// Bound on the step: 4p-7 when 3 divides p, else 4p-5.
TEST(ZeroBubbleGenerators, VMinHasAThirdOfTheMemory) {
  for (const Case& c : cases("v-min")) {
    const int bound = c.p == 1 ? 0 : c.p % 3 == 0 ? 4 * c.p - 7 : 4 * c.p - 5;
    EXPECT_LE(c.times.step_idle(), std::max(bound, idle_of_few(c))) << c;
    EXPECT_LE(c.peak(), 2 * ((c.p + 2 + 2) / 3)) << c;
  }
}

TEST(ZeroBubbleGenerators, TheVSchedulesHoldTheirBoundsAtEverySizeUpToSixteen) {
  for (int p = 3; p <= 16; ++p) {
    for (const int m : {p, p + 1, 3 * p}) {
      const UnitTimes half = unit_times(generate("v-half", request(p, m)));
      EXPECT_LE(half.step_idle(), p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) << p << " " << m;
      const UnitTimes least = unit_times(generate("v-min", request(p, m)));
      EXPECT_LE(least.step_idle(), p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) << p << " " << m;
    }
  }
}

// Bound on the step: 2(p-1) for m >= 2p; of fewer micro-batches each that is missing leaves two units.
TEST(ZeroBubbleGenerators, DualpipeVHoldsItsBounds) {
  for (const Case& c : cases("dualpipe-v")) {
    EXPECT_LE(c.times.step_idle(), 2 * (c.p - 1) + 2 * std::max(0, 2 * c.p - c.m)) << c;
    EXPECT_LE(c.peak(), std::min(2 * c.m, 2 * c.p + 1)) << c;
  }
}

// Bound on the step: (p/2-1)(F&B + B - 3W) for even m >= 2p, with F&B = F + B as nothing overlaps at unit
// times.
TEST(ZeroBubbleGenerators, DualpipeHoldsItsBounds) {
  for (const int p : {2, 4, 6, 8}) {
    for (const int m : {2 * p, 2 * p + 2, 4 * p}) {
      const UnitTimes times = unit_times(generate("dualpipe", request(p, m)));
      EXPECT_LE(times.step_idle(), (p / 2 - 1) * 2) << p << " " << m;
      for (const int peak : times.peak) EXPECT_LE(peak, p + 1) << p << " " << m;
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
