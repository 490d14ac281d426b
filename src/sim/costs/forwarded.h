// SPDX-License-Identifier: Apache-2.0
// Costs that forward all calls to others: a wrapper overrides only what it changes.
#pragma once

#include "sim/costs/costs.h"

namespace penstock::sim {

class ForwardedCosts : public Costs {
 public:
  // `base` must outlive this.
  explicit ForwardedCosts(const Costs& base) : base_(base) {}

  bool holds_bytes() const override { return base_.holds_bytes(); }
  RecordBytes record(const schedule::Key& key) const override { return base_.record(key); }
  ActionBytes action(int device, const schedule::Op& op) const override { return base_.action(device, op); }
  StageBytes stage(int number) const override { return base_.stage(number); }
  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override {
    return base_.seconds(device, index, op);
  }
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override {
    return base_.transfer(device, index, send);
  }
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override {
    return base_.attention(device, index, op);
  }
  AttentionShare served_attention(int server, int owner, std::uint32_t index,
                                  const schedule::Op& op) const override {
    return base_.served_attention(server, owner, index, op);
  }
  double share_of_attention(const schedule::Exchange& exchange) const override {
    return base_.share_of_attention(exchange);
  }

 private:
  const Costs& base_;
};

}  // namespace penstock::sim
