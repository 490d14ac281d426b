// SPDX-License-Identifier: Apache-2.0
// A value per (peer, channel) of one device. Devices have few peers, so a linear search is faster than a map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::sim {

template <class Value>
class ChannelTable {
 public:
  // Returns the value, default-constructed on first use. The reference is valid until the next first use.
  Value& at(int peer, schedule::Channel channel) {
    const std::int64_t key =
        static_cast<std::int64_t>(peer) * schedule::kChannels + static_cast<int>(channel);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == key) return values_[i];
    }
    keys_.push_back(key);
    return values_.emplace_back();
  }

 private:
  std::vector<std::int64_t> keys_;
  std::vector<Value> values_;
};

}  // namespace penstock::sim
