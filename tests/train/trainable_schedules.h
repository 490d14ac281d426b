// SPDX-License-Identifier: Apache-2.0
// Laws over every schedule that a run can train with: values and names for INSTANTIATE_TEST_SUITE_P.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/generators/generator.h"

namespace penstock::testing {

inline std::vector<schedule::Generator> trainable_schedules() {
  std::vector<schedule::Generator> trainable;
  for (const schedule::Generator& generator : schedule::generators()) {
    if (!generator.replicates_parameters) trainable.push_back(generator);
  }
  return trainable;
}

inline std::string schedule_name(const ::testing::TestParamInfo<schedule::Generator>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace penstock::testing
