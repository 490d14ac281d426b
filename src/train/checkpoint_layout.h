// SPDX-License-Identifier: Apache-2.0
// Which files a checkpoint consists of, and what stands in each. It follows from the model's shape alone, so
// it is the same for every number of devices.
//
// The model is cut into parts that never lie on two devices: the embedding, each layer, the final norm with
// the output matrix. Each part has a file of weights in the form of Hugging Face's sharded safetensors, and
// one of moments.
#pragma once

#include <cstdint>
#include <string>
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

// All files of tensors, in the model's order, a part's weights before its moments.
std::vector<CheckpointFile> checkpoint_files(const model::Shape& shape);

// Where a parameter is kept: the name of its weight is its own, those of its moments end in ".first_moment"
// and ".second_moment".
std::string kept_name(const std::string& parameter, Kept kept);

// Hugging Face's index: which weight stands in which file.
std::string weight_index(const std::vector<CheckpointFile>& files);

// "step-000050".
std::string checkpoint_name(std::int64_t step);

}  // namespace penstock::train
