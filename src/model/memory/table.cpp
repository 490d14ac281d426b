// SPDX-License-Identifier: Apache-2.0
#include "model/memory/table.h"

#include <algorithm>

namespace penstock::model {

std::array<std::pair<std::string_view, Bytes>, 10> categories(const MemoryPeaks& memory) {
  const std::array bytes{memory.weights,        memory.gradients,    memory.optimizer, memory.activations,
                         memory.weight_records, memory.kv_gradients, memory.logits,    memory.transient,
                         memory.transfers,      memory.copies};
  std::array<std::pair<std::string_view, Bytes>, 10> named;
  for (std::size_t i = 0; i < named.size(); ++i) named[i] = {kCategoryNames[i], bytes[i]};
  return named;
}

std::pair<std::string_view, Bytes> largest_category(const MemoryPeaks& memory) {
  const auto all = categories(memory);
  return *std::max_element(all.begin(), all.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

}  // namespace penstock::model
