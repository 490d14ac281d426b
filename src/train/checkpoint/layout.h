// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint and their contents. They depend only on the model's shape, so they are the same
// for every number of devices.
//
// The embedding, each layer, and the final norm with the output matrix each have a file of weights, in the
// format of Hugging Face's sharded safetensors, and one of moments. The files hold whole tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/shape.h"

namespace penstock::train {

inline constexpr const char* kCheckpointFacts = "checkpoint.json";
inline constexpr const char* kWeightIndex = "model.safetensors.index.json";

enum class Kept : std::uint8_t { Weight, FirstMoment, SecondMoment };

struct CheckpointTensor {
  std::string name;       // in the file
  std::string parameter;  // Hugging Face's name
  Kept kept = Kept::Weight;
};

struct CheckpointFile {
  std::string name;  // "model-00002-of-00006.safetensors", "optimizer-00002-of-00006.safetensors"
  std::vector<CheckpointTensor> tensors;  // in the order of their bytes
};

// All tensor files in the model's order, each part's weights before its moments.
std::vector<CheckpointFile> checkpoint_files(const model::Shape& shape);

// Whether a file of this name has weights, not moments.
bool has_weights(std::string_view file);

// Tensor name in the file: the weight has the parameter's name, its moments add ".first_moment" and
// ".second_moment".
std::string kept_name(const std::string& parameter, Kept kept);

// Hugging Face's index, which maps each weight to its file.
std::string weight_index(const std::vector<CheckpointFile>& files);

// "step-000050".
std::string checkpoint_name(std::int64_t step);

}  // namespace penstock::train
