// SPDX-License-Identifier: Apache-2.0
#include "train/initial_weights.h"

#include "base/error.h"
#include "files/elements.h"
#include "train/tensor_bytes.h"
#include "train/weights_file.h"

namespace penstock::train {

void load_weights(const files::ModelWeights& weights, const std::vector<nn::Parameter*>& parameters) {
  for (const nn::Parameter* parameter : parameters) {
    const files::StoredTensor* stored = weights.find(stored_name(*parameter));
    const at::Tensor own = parameter->unpadded(parameter->master);
    PENSTOCK_CHECK(stored && stored->shape.size() == static_cast<std::size_t>(own.dim()) &&
                       stored->shape.front() >= parameter->first_row + own.size(0) &&
                       stored->shape.back() == own.sizes().back(),
                   "the weights have been checked");
    const std::size_t row = stored->bytes.size() / static_cast<std::size_t>(stored->shape.front());
    const auto rows = stored->bytes.subspan(static_cast<std::size_t>(parameter->first_row) * row,
                                            static_cast<std::size_t>(own.size(0)) * row);
    files::convert_elements(rows, stored->type, bytes_of_tensor(own), element_type(own));
  }
}

}  // namespace penstock::train
