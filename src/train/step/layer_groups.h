// SPDX-License-Identifier: Apache-2.0
// The ranks that compute a stage's layers together with this one: its tensor, context and expert groups.
// Their waits run `meanwhile`, which advances what goes on beside them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/clock.h"
#include "comm/groups.h"
#include "nn/groups/context_group.h"
#include "nn/groups/expert_group.h"
#include "nn/groups/tensor_group.h"
#include "run/run.h"
#include "schedule/timeline.h"
#include "train/record/axis_traffic.h"

namespace penstock::train {

class LayerGroups {
 public:
  // Run and groups outlive these. Collective.
  LayerGroups(const run::Run& run, const comm::Groups& groups, std::function<bool()> meanwhile);

  nn::TensorGroup& tensor() { return tensor_; }
  const nn::ContextGroup& context() const { return context_; }
  const nn::ExpertGroup& experts() const { return experts_; }
  comm::Communicator* vocabulary() { return polling_vocabulary_.get(); }  // null: those of the pipeline

  // Adds up the routers' choices over the ranks that have the tokens whose load is evened out. Collective.
  void sum_choices(std::span<std::int64_t> counts);

  // Of this rank from restart() to read_waits(), in the order of kLayerAxes; zero where there is one rank.
  using OfAxes = std::array<double, kLayerAxes.size()>;
  struct Traffic {
    OfAxes sent{}, waited{};  // bytes, seconds
  };
  void restart();
  void read_waits(const backend::DeviceClock& clock);  // until the device is through with them
  Traffic traffic() const;
  // Seconds of one op's time, which is of the same clock.
  Seconds waited_during(const schedule::Event& op) const;

 private:
  std::unique_ptr<comm::Communicator> polling(comm::Communicator& ranks) const;
  nn::TensorGroup make_tensor(const comm::Groups& groups);
  nn::ContextGroup make_context(const comm::Groups& groups);
  nn::ExpertGroup make_experts(const comm::Groups& groups);
  void prepare_balance(const comm::Groups& groups);
  OfAxes all_sent() const;
  std::array<nn::Waits, kLayerAxes.size()> take_waits();

  const run::Run& run_;
  std::function<bool()> meanwhile_;
  std::unique_ptr<comm::Communicator> polling_tensor_, polling_context_, polling_experts_,
      polling_vocabulary_;
  std::vector<std::unique_ptr<comm::Communicator>> balancing_;
  nn::TensorGroup tensor_;
  nn::ContextGroup context_;
  nn::ExpertGroup experts_;
  OfAxes sent_before_{};
  std::array<std::vector<schedule::Event>, kLayerAxes.size()> waits_;  // in order of time
};

}  // namespace penstock::train
