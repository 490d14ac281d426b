// SPDX-License-Identifier: Apache-2.0
// Text sampled from a trained model.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/stage.h"

namespace penstock::train {

struct Sampling {
  std::int64_t tokens = 300;  // to draw
  double temperature = 0.8;   // of the softmax; smaller is closer to greedy
  std::uint64_t seed = 1;     // token i depends on the seed and on i
};

// Continues `prompt` (not empty) by drawing tokens one by one. `model` is the whole model in one stage. The
// prompt and the drawn tokens must fit the model's positions. Returns only the drawn tokens.
std::vector<std::int64_t> sample_text(nn::Stage& model, std::vector<std::int64_t> prompt,
                                      const Sampling& sampling);

}  // namespace penstock::train
