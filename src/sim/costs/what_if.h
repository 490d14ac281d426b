// SPDX-License-Identifier: Apache-2.0
// What-if changes of other costs: a slower device, a slower link, twice the time of a kind.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/costs/forwarded.h"

namespace penstock::sim {

// One change: everything that it selects takes `factor` times as long. Factors are from 0 to kMostFactor.
inline constexpr double kMostFactor = 1e12;
struct Override {
  enum class What : std::uint8_t { Device, Link, Kind };
  What what = What::Device;
  int device = 0;                                     // for Device, or the sender for Link
  int peer = 0;                                       // the receiver for Link
  schedule::OpKind kind = schedule::OpKind::Forward;  // for Kind: F, B, I, W
  double factor = 1;
};

// Parses "device:2=1.5", "link:0-1=4" (this direction only) or "kind:W=0.5". Device numbers must be below
// `devices`. Throws InputError with the text and what was expected.
Override parse_override(std::string_view text, int devices);

// Throws InputError for a change that changes nothing of the program, whose kind or link it lacks, and for a
// second one of the same thing.
void check_overrides(const schedule::Program& program, std::span<const Override> overrides);

// If several overrides apply, their factors multiply. A device's factor applies to its copies and to all its
// compute, also for other devices, but not to its links.
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
  void slow_link(const Override& change);
  double factor(int device, const schedule::Op& op) const;

  std::vector<double> device_factor_;
  std::array<double, 4> kind_factor_{1, 1, 1, 1};  // [F, B, I, W]
  std::vector<Override> links_;                    // one per link
};

}  // namespace penstock::sim
