// SPDX-License-Identifier: Apache-2.0
// The laws of gpipe, 1f1b and slimpipe (docs/slimpipe.md, "How it works"), at unit costs F = 1, B = 2.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "schedule/generators/generator.h"
#include "schedule/unit_times.h"

namespace penstock::schedule {
namespace {

// A step's bubble is (p-1)/(entries + p-1) exactly when its makespan is (entries + p-1)(F + B).
int ideal_makespan(int devices, int entries_per_device) { return 3 * (entries_per_device + devices - 1); }

TEST(BasicGenerators, GpipeKeepsEveryMicroBatchAndHasItsBubble) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Schedule schedule = generate("gpipe", request(p, m));
      const UnitTimes times = unit_times(schedule);
      EXPECT_TRUE(is_legal(schedule, times));
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
      EXPECT_TRUE(is_legal(schedule, times));
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
  EXPECT_TRUE(is_legal(schedule, times));
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

// Micro-batches of any numbers of slices; with v > 1 no fewer than p.
Request random_request(std::mt19937& random, int most_chunks) {
  const auto up_to = [&](int most) { return static_cast<int>(1 + random() % most); };
  Request asked;
  asked.devices = up_to(8);
  asked.chunks = up_to(most_chunks);
  asked.slices.assign(up_to(5), 0);
  for (int& n : asked.slices) n = up_to(20) + (asked.chunks > 1 ? asked.devices - 1 : 0);
  return asked;
}

std::string describe(const Request& asked) {
  std::string text = "p " + std::to_string(asked.devices) + " v " + std::to_string(asked.chunks) + " n";
  for (const int n : asked.slices) text += " " + std::to_string(n);
  return text;
}

void expect_bubble_of_unequal_micro_batches(const char* name, const Request& asked) {
  const Schedule schedule = generate(name, asked);
  const UnitTimes times = unit_times(schedule);
  SCOPED_TRACE(name + (" " + describe(asked)));
  EXPECT_TRUE(is_legal(schedule, times));
  const int entries = std::accumulate(asked.slices.begin(), asked.slices.end(), 0) * asked.chunks;
  EXPECT_EQ(times.makespan, ideal_makespan(asked.devices, entries));
  const int longest = *std::max_element(asked.slices.begin(), asked.slices.end()) * asked.chunks;
  for (int r = 0; r < asked.devices; ++r) EXPECT_LE(times.peak[r], longest + 2 * (asked.devices - r - 1));
}

TEST(BasicGenerators, UnequalMicroBatchesHaveTheBubbleOfTheirSlices) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    expect_bubble_of_unequal_micro_batches("slimpipe", random_request(random, 3));
    expect_bubble_of_unequal_micro_batches("seq1f1b", random_request(random, 1));
  }
}

// If every device raised its target when it opens the longer micro-batch itself, device 0 would wait for the
// chunk turn of the third one and device 3 for device 0's backwards.
TEST(BasicGenerators, AllDevicesRaiseTheirTargetsInOneTimeSlot) {
  expect_bubble_of_unequal_micro_batches("slimpipe", {4, {8, 4, 16}, 2, 0});
}

}  // namespace
}  // namespace penstock::schedule
