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

files::ElementType element_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? files::ElementType::F64 : files::ElementType::F32;
}

// What the file calls a parameter: a tied output matrix has the embedding's values.
std::string stored_name(const nn::Parameter& parameter) {
  return parameter.replica == nn::Replica::None ? parameter.name : "model.embed_tokens.weight";
}

void read_parameter(const files::Safetensors& file, const std::string& path, nn::Parameter& parameter) {
  const std::string name = stored_name(parameter);
  const files::StoredTensor* stored = file.find(name);
  if (!stored) throw InputError(path + ": has no tensor \"" + name + "\"");
  const bool fits =
      stored->shape == parameter.master.sizes().vec() && stored->type == element_type(parameter.master);
  if (!fits) {
    throw InputError(path + ": tensor \"" + name + "\" is " + std::string(name_of(stored->type)) +
                     " of another shape or type than the model's " +
                     std::string(name_of(element_type(parameter.master))));
  }
  std::memcpy(parameter.master.mutable_data_ptr(), stored->bytes.data(), stored->bytes.size());
}

}  // namespace

void write_weights(const std::string& path, const model::Shape& shape, std::map<int, nn::Stage>& stages,
                   comm::Communicator& pipeline) {
  std::vector<at::Tensor> kept;
  std::vector<files::StoredTensor> stored;
  gather_weights(
      model::parameter_names(shape), stages, pipeline,
      [&](const std::string& name, const at::Tensor& tensor) {
        kept.push_back(tensor);
        stored.push_back({name, element_type(tensor), tensor.sizes().vec(), bytes_of_tensor(tensor)});
      });
  if (pipeline.rank() == 0) files::write_safetensors(path, stored, {{"format", "pt"}});
}

void read_weights(const std::string& path, nn::Stage& stage) {
  const files::Safetensors file(path);
  for (nn::Parameter& parameter : stage.parameters()) read_parameter(file, path, parameter);
  stage.weights_from_masters();
}

}  // namespace penstock::train
