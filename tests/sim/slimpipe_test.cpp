// SPDX-License-Identifier: Apache-2.0
// Interleaved slimpipe in time: what latency costs with groups of p slices and of more, and what waits in
// queues.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

schedule::Request asked(int p, int m, int n, int v, int group, double transfer = 0) {
  schedule::Request request = schedule::request(p, m, n, v);
  request.group = group;
  request.transfer_in_forwards = transfer;
  return request;
}

Seconds makespan(const schedule::Request& request, Seconds latency) {
  return evaluate(lower(generate("slimpipe", request)), UnitCosts({.transfer = latency})).makespan;
}

TEST(SlimpipeLatency, IsPaidAtEveryTurnWithGroupsOfPSlicesAndTwiceAcrossThePipelineWithMore) {
  const double latency = 0.01;
  EXPECT_NEAR(makespan(asked(8, 1, 64, 5, 8), 0), 3.0 * (320 + 7), 1e-9);
  EXPECT_NEAR(makespan(asked(8, 1, 64, 5, 8), latency), 3.0 * (320 + 7) + 526 * latency, 1e-6);
  EXPECT_NEAR(makespan(asked(8, 1, 64, 5, 16), latency), 3.0 * (320 + 7) + 14 * latency, 1e-6);
}

TEST(SlimpipeLatency, ChoosesTheSmallestGroupThatHidesIt) {
  const auto order = [](const schedule::Request& request) { return generate("slimpipe", request).devices; };
  EXPECT_EQ(order(asked(8, 1, 64, 5, 0)), order(asked(8, 1, 64, 5, 8)));
  EXPECT_EQ(order(asked(8, 1, 64, 5, 0, 0.01)), order(asked(8, 1, 64, 5, 16)));
  EXPECT_EQ(order(asked(8, 1, 64, 5, 0, 1.1)), order(asked(8, 1, 64, 5, 32)));  // 16 - 8 < 8·1.1
  EXPECT_EQ(order(asked(8, 1, 64, 5, 0, 100)), order(asked(8, 1, 64, 5, 64)));
  EXPECT_EQ(order(asked(4, 1, 4, 2, 0, 100)), order(asked(4, 1, 4, 2, 4)));
}

// Inputs of later chunks reach device 0 g - p steps before their turn, and wait there.
TEST(SlimpipeQueues, HoldTheInputsThatComeEarly) {
  for (const int p : {2, 3, 4}) {
    for (const int v : {2, 3}) {
      for (const int group : {12, 6, 4}) {
        if (group < p) continue;
        const auto one_byte = [](int, int) { return Bytes{1}; };
        const auto program =
            lower(generate("slimpipe", asked(p, 2, 12, v, group)), {.transfer_bytes = one_byte});
        const Result result = evaluate(program, UnitCosts());
        const auto queued = [&](int device) {
          return result.devices[device].memory.peaks[static_cast<std::size_t>(Held::Queues)];
        };
        SCOPED_TRACE(::testing::Message() << p << " " << v << " " << group);
        EXPECT_LE(queued(0), std::max(group - p, 1));
        EXPECT_GE(queued(0), group - p);
        EXPECT_LE(queued(p - 1), group - p + 3);
        for (int device = 1; device + 1 < p; ++device) EXPECT_LE(queued(device), 2);
        EXPECT_NEAR(result.makespan, 3.0 * (2 * 12 * v + p - 1), 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::sim
