// SPDX-License-Identifier: Apache-2.0
#include "train/sample.h"

#include <algorithm>
#include <string_view>

#include "files/tokenizers/byte_tokenizer.h"
#include "nn/stage.h"
#include "train/checkpoint/weights_file.h"
#include "train/sample_text.h"

namespace penstock::train {

Tokens prompt_bytes(Tokens seq_len) { return std::clamp<Tokens>(seq_len / 2, 1, 64); }

std::string sample_of(const run::Run& run, const TokenData& data, const std::string& weights_file,
                      std::int64_t tokens) {
  nn::Stage model({.shape = run.shape(),
                   .layers = {0, run.shape().layers},
                   .precision = run.precision,
                   .rotary = nn::rotary_table(run.shape(), run.options.data.seq_len, run.precision)});
  read_weights(weights_file, model);
  const std::string_view text = data.held_out_text().empty() ? data.training_text() : data.held_out_text();
  const auto length = static_cast<std::size_t>(prompt_bytes(run.options.data.seq_len));
  const std::string_view prompt = text.substr(0, length);
  const Sampling sampling{.tokens = tokens, .seed = static_cast<std::uint64_t>(run.options.train.seed)};
  return std::string(prompt) + files::decode_bytes(sample_text(model, files::encode_bytes(prompt), sampling));
}

}  // namespace penstock::train
