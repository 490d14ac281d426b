// SPDX-License-Identifier: Apache-2.0
// Sample text of a run's model, prompted with the first words of its own text.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "run/run.h"
#include "train/data/data.h"

namespace penstock::train {

// Bytes of the prompt that sample_of continues: 64, or half a sequence where sequences are shorter, but one
// at least.
Tokens prompt_bytes(Tokens seq_len);

// A continuation of the beginning of the held-out text (the training text when none is held out), prompt
// included, drawn from a run's written weights. Prompt and tokens together fit one sequence. On one rank.
std::string sample_of(const run::Run& run, const TokenData& data, const std::string& weights_file,
                      std::int64_t tokens);

}  // namespace penstock::train
