// SPDX-License-Identifier: Apache-2.0
#include "train/initial_weights.h"

#include "base/error.h"
#include "files/elements.h"
#include "train/tensor_bytes.h"
#include "train/weights_file.h"

namespace penstock::train {

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
