// SPDX-License-Identifier: Apache-2.0
// Two ways to carry out one run, which differ by rounding alone.
#pragma once

#include <gtest/gtest.h>

#include "run/options.h"
#include "train/small_run.h"

namespace penstock::testing {

// With this rate and epsilon, and neither decay nor clipping, the weights after a step tell the gradients.
inline void tell_gradients(run::TrainOptions& options) {
  options.warmup_steps = 0;
  options.lr = options.min_lr = 1.0;
  options.eps = 1.0;
  options.weight_decay = 0;
  options.clip = 0;
}

// Relative to the greatest change of each parameter since `initial`, which is that of its gradients; beside
// it counts the rounding of the masters, once a step.
inline void expect_near_run(const Trained& got, const Trained& wanted, const Trained& initial,
                            double tolerance) {
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  for (std::size_t step = 0; step < wanted.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], wanted.losses[step], tolerance * wanted.losses[step]);
    EXPECT_NEAR(got.norms[step], wanted.norms[step], tolerance * wanted.norms[step]);
  }
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (const auto& [name, weight] : wanted.weights) {
    const double change = weight.sub(initial.weights.at(name)).abs().max().item<double>();
    const double difference = got.weights.at(name).sub(weight).abs().max().item<double>();
    const double ulp = weight.scalar_type() == at::kDouble ? 0x1p-52 : 0x1p-23;
    const double rounding = 2 * ulp * weight.abs().max().item<double>();
    EXPECT_GT(change, 0) << name;
    EXPECT_LE(difference, tolerance * change + rounding) << name;
  }
}

}  // namespace penstock::testing
