// SPDX-License-Identifier: Apache-2.0
// A model from a run of ours to a folder in Hugging Face's form, and back.
#pragma once

#include <string>

#include "base/units.h"

namespace penstock::cli {

struct WeightsConversion {
  std::string
      source;  // a run directory, a checkpoint, a folder in Hugging Face's form, or a safetensors file
  std::string target;                 // a folder that is not there yet
  std::string form;                   // "huggingface" or "penstock"; empty: the other one than the source's
  std::string precision;              // "f64", "f32", "f16" or "bf16"; empty: as the source has it
  Bytes shard_bytes = 5'000'000'000;  // of a file of weights, about
  std::string config;  // a config.json or a run.toml that tells the source's shape; empty: what is beside it
};

// Writes config.json and safetensors (with an index when there are several), or run.toml and
// weights.safetensors. The folder appears whole or not at all. Progress goes to standard error. Gives a line
// that tells what was written. Throws InputError naming the file and what is wrong with it.
std::string convert_weights(const WeightsConversion& conversion);

}  // namespace penstock::cli
