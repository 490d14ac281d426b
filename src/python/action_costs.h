// SPDX-License-Identifier: Apache-2.0
// Costs that a Python function gives for each action. It is called before the simulation, once per action in
// program order, so that the simulation itself runs without the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

#include "schedule/program.h"
#include "sim/costs/forwarded.h"

namespace penstock::python {

using SecondsOfActions = std::vector<std::vector<Seconds>>;  // [device][op]; 0 for other ops

// function(kind, stage, micro_batch, slice) in seconds; kinds are "F", "B", "I", "W". Its exceptions
// propagate to the caller. Throws InputError that names the action if it returns a negative number, NaN,
// infinity or no number.
SecondsOfActions seconds_of_actions(nanobind::callable function, const schedule::Program& program);

// Actions take the seconds of the list; all else costs what `others` says.
class ActionCosts final : public sim::ForwardedCosts {
 public:
  ActionCosts(SecondsOfActions seconds, std::shared_ptr<const sim::Costs> others)
      : ForwardedCosts(*others), seconds_(std::move(seconds)), others_(std::move(others)) {}

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override {
    return is_action(op.kind) ? seconds_[device][index] : others_->seconds(device, index, op);
  }
  // The same fraction of an action as in `others`.
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
