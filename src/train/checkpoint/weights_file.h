// SPDX-License-Identifier: Apache-2.0
// A model's weights in safetensors files with Hugging Face's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "files/model_weights.h"
#include "model/shape.h"
#include "nn/stage.h"

namespace penstock::train {

files::ElementType element_type(const at::Tensor& tensor);  // f32 or f64

// A parameter's name in files; a tied output matrix is stored as the embedding.
std::string stored_name(const nn::Parameter& parameter);

// Copies the parameter's part of a stored tensor to `tensor`, its master or a moment; padding stays as it is.
// Throws InputError that begins with `path` and names the tensor when it is missing (nullptr) or has another
// shape or type than the whole parameter.
void read_part(const files::StoredTensor* stored, const std::string& name, const std::string& path,
               const nn::Parameter& parameter, const at::Tensor& tensor);

// Writes the master weights atomically: each rank writes those that it owns, then rank 0 renames the file.
// With `gather`, if only rank 0's host sees the path, rank 0 writes what the others send. The bytes do not
// depend on the mesh. Collective.
void write_weights(const std::string& path, const model::Shape& shape,
                   const std::vector<nn::Parameter*>& parameters, comm::World world, bool gather = false);

// Sets the parameters' masters from weights of any floating-point format; reads only the bytes of this rank's
// parts. The weights must have been checked against the model's shape; the caller then sets the weights from
// the masters. `after_tensor` is called after each tensor; may be empty.
void load_weights(const files::ModelWeights& weights, const std::vector<nn::Parameter*>& parameters,
                  const std::function<void()>& after_tensor = {});

// Sets the weights of a stage from the file. Throws InputError when one is missing or has another shape or
// type.
void read_weights(const std::string& path, nn::Stage& stage);

}  // namespace penstock::train
