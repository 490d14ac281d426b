// SPDX-License-Identifier: Apache-2.0
// config.json in Hugging Face's form, of models of the Llama family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/shape.h"

namespace penstock::files {

// Throws InputError naming the file, the key, its value and what would be right: no JSON, another model_type,
// missing or absurd values, and every setting that would change the mathematics and is not supported (biases,
// another activation, another rope_scaling, sliding windows, keys that are not known at all). Settings of
// generation, initialisation and storage are passed over. The shape has been checked with model::validate().
// `path` may be the folder that holds config.json.
model::Shape read_model_config(const std::string& path);
model::Shape parse_model_config(std::string_view text, std::string_view origin);

std::string model_config_in(const std::string& path);  // the file that read_model_config reads

// What a config.json says beside the shape.
struct ConfigExtras {
  std::string element_type = "float32";  // of the weights beside it: float32, float16, bfloat16, float64
  std::int64_t positions = 2048;         // longest sequence the model was trained with
  std::optional<std::int64_t> begin_token, end_token, padding_token;
};

// What a file that read_model_config accepts says of them. InputError as there.
ConfigExtras read_config_extras(const std::string& path);

// A config.json that transformers reads, and that reads back to the same shape.
std::string print_model_config(const model::Shape& shape, const ConfigExtras& extras);

}  // namespace penstock::files
