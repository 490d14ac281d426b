// SPDX-License-Identifier: Apache-2.0
// What a run's model writes after the first words of its own text.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "train/data.h"
#include "train/run_plan.h"

namespace penstock::train {

// Bytes of the prompt that sample_of continues: 64, or half a sequence where sequences are shorter.
Tokens prompt_bytes(Tokens seq_len);

// Text that continues the beginning of the held-out text (the training text when none is held out), prompt
// included, drawn from the weights that a run wrote. Prompt and tokens together fit one sequence. On one
// rank.
std::string sample_of(const RunPlan& plan, const TokenData& data, const std::string& weights_file,
                      std::int64_t tokens);

}  // namespace penstock::train
