// SPDX-License-Identifier: Apache-2.0
#include "model/memory_table.h"

#include <algorithm>

namespace penstock::model {

std::array<std::pair<std::string_view, Bytes>, 10> categories(const DeviceMemory& memory) {
  return {{{"weights", memory.weights},
           {"gradients", memory.gradients},
           {"optimizer", memory.optimizer},
           {"activations", memory.activations},
           {"weight_records", memory.weight_records},
           {"kv_gradients", memory.kv_gradients},
           {"logits", memory.logits},
           {"transient", memory.transient},
           {"transfers", memory.transfers},
           {"copies", memory.copies}}};
}

std::pair<std::string_view, Bytes> largest_category(const DeviceMemory& memory) {
  const auto all = categories(memory);
  return *std::max_element(all.begin(), all.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

}  // namespace penstock::model
