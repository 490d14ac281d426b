// SPDX-License-Identifier: Apache-2.0
// A model's weights as a safetensors file with Hugging Face's names.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "files/safetensors.h"
#include "model/shape.h"
#include "nn/stage.h"

namespace penstock::train {

files::ElementType element_type(const at::Tensor& tensor);  // f32 or f64

// What files call a parameter: a tied output matrix has the embedding's values.
std::string stored_name(const nn::Parameter& parameter);

// Copies the bytes of a stored tensor. Throws InputError that begins with `path` and names the tensor when it
// is missing (nullptr) or has another shape or type.
void read_tensor(const files::StoredTensor* stored, const std::string& name, const std::string& path,
                 const at::Tensor& tensor);

// Writes the master weights of all ranks of a pipeline, from rank 0, atomically; the file does not depend on
// where the parameters live. `path` counts on rank 0. Collective.
void write_weights(const std::string& path, const model::Shape& shape,
                   const std::vector<nn::Parameter*>& parameters, comm::Communicator& pipeline);

// Sets the weights of a stage from the file. Throws InputError when one is missing or has another shape or
// type.
void read_weights(const std::string& path, nn::Stage& stage);

}  // namespace penstock::train
