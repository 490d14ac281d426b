// SPDX-License-Identifier: Apache-2.0
// Other costs, changed: a slower device, a slower link, twice the time of a kind.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/costs/forwarded.h"

namespace penstock::sim {

// One change: everything it names takes `factor` times as long.
struct Override {
  enum class What : std::uint8_t { Device, Link, Kind };
  What what = What::Device;
  int device = 0;                                     // Device; Link: from
  int peer = 0;                                       // Link: to
  schedule::OpKind kind = schedule::OpKind::Forward;  // Kind: F, B, I, W
  double factor = 1;
};

// "device:2=1.5", "link:0-1=4" (that direction alone), "kind:W=0.5". Throws InputError naming the text and
// what was expected; devices must be among the given number.
Override parse_override(std::string_view text, int devices);

// Factors multiply where several overrides apply. A device's factor holds for its copies and all that it
// computes, for others too, not for its links.
class WhatIf final : public ForwardedCosts {
 public:
  // `base` must outlive this.
  WhatIf(const Costs& base, std::span<const Override> overrides, int devices);

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;
  AttentionShare served_attention(int server, int owner, std::uint32_t index,
                                  const schedule::Op& op) const override;

 private:
  double factor(int device, const schedule::Op& op) const;

  std::vector<double> device_factor_;
  std::array<double, 4> kind_factor_{1, 1, 1, 1};  // [F, B, I, W]
  std::vector<Override> links_;
};

}  // namespace penstock::sim
