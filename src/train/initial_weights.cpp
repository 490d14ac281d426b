// SPDX-License-Identifier: Apache-2.0
#include "train/initial_weights.h"

#include "base/error.h"
#include "files/elements.h"
#include "train/tensor_bytes.h"

namespace penstock::train {
namespace {

files::ElementType element_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? files::ElementType::F64 : files::ElementType::F32;
}

// What files call a parameter: a tied output matrix has the embedding's values.
std::string stored_name(const nn::Parameter& parameter) {
  return parameter.replica == nn::Replica::None ? parameter.name : "model.embed_tokens.weight";
}

}  // namespace

void load_weights(const files::ModelWeights& weights, nn::Stage& stage) {
  for (nn::Parameter& parameter : stage.parameters()) {
    const files::StoredTensor* stored = weights.find(stored_name(parameter));
    PENSTOCK_CHECK(stored && stored->shape == parameter.master.sizes().vec(),
                   "the weights have been checked");
    files::convert_elements(stored->bytes, stored->type, bytes_of_tensor(parameter.master),
                            element_type(parameter.master));
  }
  stage.weights_from_masters();
}

}  // namespace penstock::train
