// SPDX-License-Identifier: Apache-2.0
// config.json in Hugging Face's form, of models of the Llama family.
#pragma once

#include <string>
#include <string_view>

#include "model/shape.h"

namespace penstock::files {

// Throws InputError naming the file, the key, its value and what would be right: no JSON, another model_type,
// missing or absurd values, and every setting that would change the mathematics and is not supported (biases,
// another activation, another rope_scaling, sliding windows, keys that are not known at all). Settings of
// generation, initialisation and storage are passed over. The shape has been checked with model::validate().
model::Shape read_model_config(const std::string& path);
model::Shape parse_model_config(std::string_view text, std::string_view origin);

}  // namespace penstock::files
