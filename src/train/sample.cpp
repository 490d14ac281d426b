// SPDX-License-Identifier: Apache-2.0
#include "train/sample.h"

#include <algorithm>
#include <string_view>

#include "nn/stage.h"
#include "train/sample_text.h"
#include "train/tokenizer.h"
#include "train/weights_file.h"

namespace penstock::train {

Tokens prompt_bytes(Tokens seq_len) { return std::min<Tokens>(64, seq_len / 2); }

std::string sample_of(const RunPlan& plan, const TokenData& data, const std::string& weights_file,
                      std::int64_t tokens) {
  nn::Stage model({.shape = plan.shape(),
                   .layers = {0, plan.shape().layers},
                   .precision = plan.precision(),
                   .max_positions = plan.options.data.seq_len});
  read_weights(weights_file, model);
  const std::string_view text = data.held_out_text().empty() ? data.training_text() : data.held_out_text();
  const auto length = static_cast<std::size_t>(prompt_bytes(plan.options.data.seq_len));
  const std::string_view prompt = text.substr(0, length);
  const Sampling sampling{.tokens = tokens, .seed = static_cast<std::uint64_t>(plan.options.train.seed)};
  return std::string(prompt) + decode_bytes(sample_text(model, encode_bytes(prompt), sampling));
}

}  // namespace penstock::train
