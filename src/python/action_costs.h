// SPDX-License-Identifier: Apache-2.0
// Costs that a Python function gives for each action. It is asked before the simulation begins, once for each
// action in the program's order, so that the simulation itself runs without the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

#include "schedule/program.h"
#include "sim/costs/forwarded.h"

namespace penstock::python {

using SecondsOfActions = std::vector<std::vector<Seconds>>;  // [device][op]; 0 for other ops

// function(kind, stage, micro_batch, slice) in seconds; kinds are "F", "B", "I", "W". What it raises goes on
// to the caller. Throws InputError that names the action when it returns no number, NaN, infinity or a
// negative one.
SecondsOfActions seconds_of_actions(nanobind::callable function, const schedule::Program& program);

// Actions take what the list says; `others` answers for everything else.
class ActionCosts final : public sim::ForwardedCosts {
 public:
  ActionCosts(SecondsOfActions seconds, std::shared_ptr<const sim::Costs> others)
      : ForwardedCosts(*others), seconds_(std::move(seconds)), others_(std::move(others)) {}

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override {
    return is_action(op.kind) ? seconds_[device][index] : others_->seconds(device, index, op);
  }
  // The same share of an action as the others say.
  sim::AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override {
    return scaled(others_->attention(device, index, op), device, index, op);
  }
  sim::AttentionShare served_attention(int server, int owner, std::uint32_t index,
                                       const schedule::Op& op) const override {
    return scaled(others_->served_attention(server, owner, index, op), owner, index, op);
  }

 private:
  sim::AttentionShare scaled(sim::AttentionShare share, int device, std::uint32_t index,
                             const schedule::Op& op) const {
    const Seconds whole = others_->seconds(device, index, op);
    if (is_action(op.kind)) share.seconds = whole > 0 ? share.seconds / whole * seconds_[device][index] : 0;
    return share;
  }

  SecondsOfActions seconds_;
  std::shared_ptr<const sim::Costs> others_;
};

}  // namespace penstock::python
