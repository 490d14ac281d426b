// SPDX-License-Identifier: Apache-2.0
// Converts a model from our format to a folder in Hugging Face's format, and back.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"

namespace penstock::cli {

struct WeightsConversion {
  std::string
      source;  // a run directory, a checkpoint, a folder in Hugging Face's format, or a safetensors file
  std::string target;                // a new folder
  std::string form;                  // "huggingface" or "penstock"; empty: the one the source does not have
  std::string precision;             // "f64", "f32", "f16" or "bf16"; empty: the source's
  std::optional<Bytes> shard_bytes;  // approximate size of a weights file; default: 5 GB
  std::string config;  // a config.json or run.toml with the source's shape; empty: the one next to it
};

// Writes config.json and safetensors (with an index when there are several), or run.toml and
// weights.safetensors. The folder appears whole or not at all. Progress goes to standard error. Returns a
// one-line summary. Throws InputError naming the file and the defect.
std::string convert_weights(const WeightsConversion& conversion);

}  // namespace penstock::cli
