// SPDX-License-Identifier: Apache-2.0
// Finds the device with the earliest time: a tournament tree that replays only the path from one leaf up.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace penstock::schedule {

class Earliest {
 public:
  using Ticks = std::uint64_t;
  static constexpr Ticks kNone = ~Ticks{0};

  explicit Earliest(int devices)
      : bits_(std::bit_width(static_cast<unsigned>(devices - 1))),
        leaves_(std::size_t{1} << bits_),
        keys_(2 * leaves_, kNone) {}

  // Times must fit in this many bits, so that time and device fit in one key.
  static int bits_of_time(int devices) { return 63 - std::bit_width(static_cast<unsigned>(devices - 1)); }

  void set(int device, Ticks time) { play(device, time << bits_ | static_cast<Ticks>(device)); }
  // Lowers the device's time to `time` if it is later or unset.
  void advance(int device, Ticks time) {
    play(device, std::min(keys_[leaves_ + static_cast<std::size_t>(device)],
                          time << bits_ | static_cast<Ticks>(device)));
  }
  void unset(int device) { play(device, kNone); }

  Ticks time_of(int device) const {  // kNone if unset
    const Ticks key = keys_[leaves_ + static_cast<std::size_t>(device)];
    return key == kNone ? kNone : key >> bits_;
  }

  bool none() const { return keys_[1] == kNone; }
  Ticks time() const { return keys_[1] >> bits_; }
  int device() const { return static_cast<int>(keys_[1] & (leaves_ - 1)); }  // on a tie, the lowest

 private:
  void play(int device, Ticks key) {
    std::size_t at = leaves_ + static_cast<std::size_t>(device);
    keys_[at] = key;
    while (at > 1) {
      key = std::min(key, keys_[at ^ 1]);
      at >>= 1;
      keys_[at] = key;
    }
  }

  int bits_;
  std::size_t leaves_;
  std::vector<Ticks> keys_;  // [1]: the winner; [k]: the earlier of [2k] and [2k + 1]
};

}  // namespace penstock::schedule
