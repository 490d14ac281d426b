// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::train {

// Sequence `index` of a step's micro-batches, int64 [sequences, tokens] each.
inline std::vector<std::int64_t> row(const std::vector<at::Tensor>& micro_batches, std::int64_t index) {
  const std::int64_t b = micro_batches.at(0).size(0), s = micro_batches.at(0).size(1);
  const auto* first =
      micro_batches.at(static_cast<std::size_t>(index / b)).const_data_ptr<std::int64_t>() + index % b * s;
  return {first, first + s};
}

}  // namespace penstock::train
