// SPDX-License-Identifier: Apache-2.0
// What a run is told whose GPU's memory has ended.
#include "train/step/device_memory.h"

#include <gtest/gtest.h>

#include "run/resolve/choose.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

// The settings in force were predicted to fit.
TEST(DeviceMemory, ThatEndsWithinThePredictionIsToldSettingsThatNeedLess) {
  run::Options options = small_options("slimpipe", 2, 8, "f32");
  options.data.seq_len = 1024;
  const run::Run run = planned(options);
  const Bytes predicted = run::greatest_total(run);
  for (const Bytes room : {predicted, 2 * predicted}) {
    const std::string text = train::settings_within(run, room);
    EXPECT_TRUE(text.starts_with("the prediction of ")) << text;
    EXPECT_NE(text.find("memory.policy = \"balanced\" would fit"), std::string::npos) << text;
  }
  EXPECT_TRUE(train::settings_within(run, predicted - 1).starts_with("memory.policy = \"balanced\""));
}

}  // namespace
}  // namespace penstock::testing
