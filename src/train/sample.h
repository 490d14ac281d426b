// SPDX-License-Identifier: Apache-2.0
// Sample text of a run's model, prompted with the first words of its own text.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "run/run.h"
#include "train/data/data.h"

namespace penstock::train {

// Prompt length of sample_of in bytes: 64, or half a sequence if that is less, but at least 1.
Tokens prompt_bytes(Tokens seq_len);

// Samples a continuation of the start of the held-out text (of the training text if none is held out) from a
// run's written weights. Returns prompt and continuation, which together must fit one sequence. Runs on one
// rank.
std::string sample_of(const run::Run& run, const TokenData& data, const std::string& weights_file,
                      std::int64_t tokens);

}  // namespace penstock::train
