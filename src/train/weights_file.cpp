// SPDX-License-Identifier: Apache-2.0
#include "train/weights_file.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "files/safetensors.h"
#include "train/gather_weights.h"
#include "train/tensor_bytes.h"

namespace penstock::train {
namespace {

std::string described(files::ElementType type, const std::vector<std::int64_t>& shape) {
  std::string text = std::string(name_of(type)) + " of [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

files::ElementType element_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? files::ElementType::F64 : files::ElementType::F32;
}

std::string stored_name(const nn::Parameter& parameter) {
  return parameter.replica == nn::Replica::None ? parameter.name : "model.embed_tokens.weight";
}

void read_tensor(const files::StoredTensor* stored, const std::string& name, const std::string& path,
                 const at::Tensor& tensor) {
  if (!stored) throw InputError(path + ": has no tensor \"" + name + "\"");
  const files::ElementType type = element_type(tensor);
  if (stored->shape != tensor.sizes().vec() || stored->type != type) {
    throw InputError(path + ": tensor \"" + name + "\" is " + described(stored->type, stored->shape) +
                     "; the model's is " + described(type, tensor.sizes().vec()));
  }
  std::memcpy(tensor.mutable_data_ptr(), stored->bytes.data(), stored->bytes.size());
}

void write_weights(const std::string& path, const model::Shape& shape,
                   const std::vector<nn::Parameter*>& parameters, comm::Communicator& pipeline) {
  std::vector<at::Tensor> kept;
  std::vector<files::StoredTensor> stored;
  gather_weights(
      model::parameter_names(shape), parameters, pipeline,
      [&](const std::string& name, const at::Tensor& tensor) {
        kept.push_back(tensor);
        stored.push_back({name, element_type(tensor), tensor.sizes().vec(), bytes_of_tensor(tensor)});
      });
  if (pipeline.rank() == 0) files::write_safetensors(path, stored, {{"format", "pt"}});
}

void read_weights(const std::string& path, nn::Stage& stage) {
  const files::Safetensors file(path);
  for (nn::Parameter& parameter : stage.parameters()) {
    const std::string name = stored_name(parameter);
    read_tensor(file.find(name), name, path, parameter.master);
  }
  stage.weights_from_masters();
}

}  // namespace penstock::train
