// SPDX-License-Identifier: Apache-2.0
// The laws of terapipe, seq1f1b, interleaved, seq1f1b-interleaved and breadth-first (docs/schedules.md, "All
// at one size"), at unit costs F = 1, B = 2. All bubbles are of the whole step.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/generators/slimpipe.h"
#include "schedule/unit_times.h"

namespace penstock::schedule {
namespace {

constexpr int kDevices[] = {1, 2, 3, 4, 8};
constexpr int kMicroBatches[] = {1, 2, 3, 8, 16};
constexpr int kSlices[] = {1, 2, 4, 8, 16};

// (entries + p-1)(F + B) is the bubble (p-1)/(entries + p-1). A loop of fewer than p units stands still at
// every turn to the next chunk, until the first of them has come round.
int looped_makespan(int p, int units, int v) {
  return 3 * (units * v + p - 1 + (v - 1) * std::max(0, p - units));
}

TEST(LoopedGenerators, TerapipeKeepsEverySliceAndHasItsBubble) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      for (const int n : kSlices) {
        const UnitTimes times = unit_times(generate("terapipe", request(p, m, n)));
        EXPECT_EQ(times.makespan, looped_makespan(p, m * n, 1));
        for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], m * n);
      }
    }
  }
}

TEST(LoopedGenerators, Seq1f1bKeepsOneMoreSlicePerDeviceTowardsTheFirst) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      for (const int n : kSlices) {
        const UnitTimes times = unit_times(generate("seq1f1b", request(p, m, n)));
        EXPECT_EQ(times.makespan, looped_makespan(p, m * n, 1));
        for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], std::min(m * n, n + p - r - 1));
      }
    }
  }
}

TEST(LoopedGenerators, BreadthFirstKeepsEverythingAndHasItsBubble) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      for (int v = 1; v <= 3; ++v) {
        const UnitTimes times = unit_times(generate("breadth-first", request(p, m, 1, v)));
        EXPECT_EQ(times.makespan, looped_makespan(p, m, v));
        for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], m * v);
      }
    }
  }
}

// Rounds as PyTorch forms them, counted over micro-batches that make up p units together.
void expect_interleaved_laws(const char* name, int p, int m, int n, int v) {
  const int least = (p + n - 1) / n, rounds = std::max(1, m / least);
  if (m % rounds != 0) return;
  const int units = m / rounds * n;  // of one round
  const UnitTimes times = unit_times(generate(name, request(p, m, n, v)));
  SCOPED_TRACE(::testing::Message() << name << " p " << p << " m " << m << " n " << n << " v " << v);
  EXPECT_EQ(times.makespan, looped_makespan(p, m * n, v));
  for (int r = 0; r < p; ++r)
    EXPECT_EQ(times.peak[r], std::min(m * n * v, (v - 1) * units + n + 2 * (p - r - 1)));
}

TEST(LoopedGenerators, InterleavedKeepsItsTargetAndHasItsBubble) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      for (int v = 1; v <= 3; ++v) expect_interleaved_laws("interleaved", p, m, 1, v);
    }
  }
}

TEST(LoopedGenerators, InterleavedSeq1f1bKeepsItsTargetAndHasItsBubble) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      for (const int n : kSlices) {
        for (int v = 1; v <= 3; ++v) expect_interleaved_laws("seq1f1b-interleaved", p, m, n, v);
      }
    }
  }
}

TEST(LoopedGenerators, SlicedSchedulesWithOneSliceAreTheirUnslicedSiblings) {
  for (const int p : kDevices) {
    for (const int m : kMicroBatches) {
      EXPECT_EQ(generate("seq1f1b", request(p, m)).devices, generate("1f1b", request(p, m)).devices);
      EXPECT_EQ(generate("terapipe", request(p, m)).devices, generate("gpipe", request(p, m)).devices);
    }
  }
}

TEST(LoopedGenerators, SlimpipesGroupsDivideTheSlicesAndLeaveMessagesTimeToFly) {
  EXPECT_EQ(slice_group(12, 4, 2), 4);
  EXPECT_EQ(slice_group(10, 4, 2), 5);
  EXPECT_EQ(slice_group(12, 4, 1), 12);
  EXPECT_EQ(slice_group(2, 4, 2), 2) << "too few";
  EXPECT_EQ(slice_group(12, 4, 2, 0.5), 6) << "two forwards for four transfers";
  EXPECT_EQ(slice_group(12, 4, 2, 10), 12) << "none leaves enough";
}

}  // namespace
}  // namespace penstock::schedule
