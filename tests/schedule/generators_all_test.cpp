// SPDX-License-Identifier: Apache-2.0
// What every schedule of the list promises, whatever it is.
#include <gtest/gtest.h>

#include <optional>

#include "base/error.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/unit_times.h"

namespace penstock::schedule {
namespace {

// None where the generator refuses the size.
std::optional<Schedule> generated(const Generator& generator, int p, int m, int n) {
  try {
    return generate(generator.name, request(p, m, n));
  } catch (const InputError&) {
    return {};
  }
}

// Every size of the law tests that the generator does not refuse.
template <class Visit>
void for_every_schedule(Visit visit) {
  for (const Generator& generator : generators()) {
    int taken = 0;
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 2, 3, 8, 16}) {
        for (const int n : {1, 2, 4, 8, 16}) {
          const std::optional<Schedule> schedule = generated(generator, p, m, n);
          if (!schedule) continue;
          SCOPED_TRACE(::testing::Message() << generator.name << " p " << p << " m " << m << " n " << n);
          EXPECT_NO_THROW(visit(generator, *schedule));
          ++taken;
        }
      }
    }
    EXPECT_GE(taken, 15) << generator.name;
  }
}

TEST(EveryGenerator, RunsEverythingOnceAndNeverWaitsForEver) {
  for_every_schedule([](const Generator& generator, const Schedule& schedule) {
    EXPECT_EQ(schedule.name, generator.name);
    EXPECT_TRUE(is_complete(schedule));
    EXPECT_TRUE(unit_times(schedule).finished);
  });
}

TEST(EveryGenerator, AddsGradientsInAFixedOrderUnlessItSaysOtherwise) {
  for_every_schedule([](const Generator& generator, const Schedule& schedule) {
    if (generator.fixed_gradient_order) {
      EXPECT_TRUE(has_fixed_gradient_order(schedule));
    }
  });
}

TEST(EveryGenerator, PutsAStageOnOneDeviceUnlessItReplicatesParameters) {
  for_every_schedule([](const Generator& generator, const Schedule& schedule) {
    std::vector<int> device_of(schedule.stages, -1);
    for (int d = 0; d < schedule.device_count(); ++d) {
      for (const Action& action : schedule.devices[d]) {
        int& home = device_of[action.key.stage];
        if (home == -1) home = d;
        EXPECT_TRUE(home == d || generator.replicates_parameters);
      }
    }
  });
}

TEST(EveryGenerator, HasNoFindings) {
  for_every_schedule([](const Generator&, const Schedule& schedule) {
    for (const Finding& finding : check(schedule)) ADD_FAILURE() << finding.text;
  });
}

TEST(EveryGenerator, TakesAsManyMicroBatchesAsOneLikes) {
  for (const Generator& generator : generators()) {
    const int p = generator.name == "dualpipe" ? 4 : 5;
    const Schedule schedule = generate(generator.name, request(p, 100));
    EXPECT_TRUE(unit_times(schedule).finished) << generator.name;
  }
}

}  // namespace
}  // namespace penstock::schedule
