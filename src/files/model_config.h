// SPDX-License-Identifier: Apache-2.0
// Hugging Face's config.json of the Llama family: llama, mixtral, qwen3, qwen3_moe and qwen2_moe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/shape.h"

namespace penstock::files {

// Throws InputError naming the file, the key, its value and the valid ones: not JSON, another model_type,
// missing or absurd values, unknown keys, and every unsupported setting that changes the mathematics (biases,
// another activation, another rope_scaling, sliding windows). Settings of generation, initialisation and
// storage are ignored. The shape has passed model::validate(). `path` may be the folder that holds
// config.json.
model::Shape read_model_config(const std::string& path);
model::Shape parse_model_config(std::string_view text, std::string_view origin);

std::string model_config_in(const std::string& path);  // the file that read_model_config reads

// Settings of a config.json outside the shape.
struct ConfigExtras {
  std::string element_type = "float32";  // of the weights: float32, float16, bfloat16, float64
  std::int64_t positions = 2048;         // longest sequence in training
  std::optional<std::int64_t> begin_token, padding_token;
  std::vector<std::int64_t> end_tokens;  // each ends a text
};

// Reads them from a file that read_model_config accepts. Throws InputError as it does.
ConfigExtras read_config_extras(const std::string& path);

// A config.json that transformers accepts and that parses back to the same shape.
std::string print_model_config(const model::Shape& shape, const ConfigExtras& extras);

}  // namespace penstock::files
