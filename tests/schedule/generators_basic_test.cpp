// SPDX-License-Identifier: Apache-2.0
// The laws of gpipe, 1f1b and slimpipe (algorithms.md: "SlimPipe"), at unit costs F = 1, B = 2.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "schedule/generators/generator.h"
#include "schedule/unit_times.h"

namespace penstock::schedule {
namespace {

// A step's bubble is (p-1)/(entries + p-1) exactly when its makespan is (entries + p-1)(F + B).
int ideal_makespan(int devices, int entries_per_device) { return 3 * (entries_per_device + devices - 1); }

void expect_legal(const Schedule& schedule, const UnitTimes& times) {
  EXPECT_TRUE(is_complete(schedule));
  EXPECT_TRUE(times.finished);
  EXPECT_TRUE(has_fixed_gradient_order(schedule));
}

TEST(BasicGenerators, GpipeKeepsEveryMicroBatchAndHasItsBubble) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Schedule schedule = generate("gpipe", request(p, m));
      const UnitTimes times = unit_times(schedule);
      expect_legal(schedule, times);
      EXPECT_EQ(times.makespan, ideal_makespan(p, m));
      for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], m);
    }
  }
}

TEST(BasicGenerators, OneForwardOneBackwardKeepsOneMorePerDeviceTowardsTheFirst) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Schedule schedule = generate("1f1b", request(p, m));
      const UnitTimes times = unit_times(schedule);
      expect_legal(schedule, times);
      EXPECT_EQ(times.makespan, ideal_makespan(p, m)) << p << " " << m;
      for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], std::min(m, p - r));
    }
  }
}

void expect_slimpipe_laws(const Request& asked) {
  const Schedule schedule = generate("slimpipe", asked);
  const UnitTimes times = unit_times(schedule);
  const int p = asked.devices, v = asked.chunks, n = asked.slices[0], m = asked.micro_batches();
  SCOPED_TRACE(::testing::Message() << "p " << p << " m " << m << " n " << n << " v " << v << " g "
                                    << asked.group);
  expect_legal(schedule, times);
  EXPECT_EQ(times.makespan, ideal_makespan(p, m * n * v));
  for (int r = 0; r < p; ++r) EXPECT_EQ(times.peak[r], std::min(m * n * v, n * v + 2 * (p - r - 1)));
}

TEST(BasicGenerators, SlimpipeKeepsItsTargetAndHasItsBubble) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      for (int n = 1; n <= 16; ++n) expect_slimpipe_laws(request(p, m, n, 1));
    }
  }
}

TEST(BasicGenerators, InterleavedSlimpipeKeepsItsTargetAndHasItsBubbleForEveryGroup) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 3; ++m) {
      for (int n = p; n <= 20; ++n) {
        for (int v = 2; v <= 3; ++v) {
          expect_slimpipe_laws(request(p, m, n, v));
          for (int g = p; g <= n; ++g) {
            Request asked = request(p, m, n, v);
            asked.group = g;
            if (n % g == 0) expect_slimpipe_laws(asked);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
