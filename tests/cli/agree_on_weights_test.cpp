// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for one which verifies its share of the weights for longer than a wait may take.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cli/train/check_weights.h"
#include "comm/threads.h"

namespace penstock::cli {
namespace {

TEST(AgreementOnWeights, WaitsForARankThatComesFromTensorToTensor) {
  comm::run_ranks(3, [](comm::Communicator& world) {
    world.set_timeout(1);
    const Refusal refusal = agree_on_weights(world, [&](const WeightsShare& mine) {
      EXPECT_EQ(mine.share, world.rank());
      EXPECT_EQ(mine.shares, 3);
      if (world.rank() != 1) return;
      for (int tensor = 0; tensor < 15; ++tensor) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        mine.after_tensor();
      }
      throw InputError("a tensor is damaged");
    });
    EXPECT_EQ(refusal.text.find("a tensor is damaged (rank 1, host "), 0) << refusal.text;
    EXPECT_EQ(refusal.exit_code, Exit::WrongInput);
  });
}

}  // namespace
}  // namespace penstock::cli
