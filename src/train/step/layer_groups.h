// SPDX-License-Identifier: Apache-2.0
// The ranks that compute a stage's layers together with this one: its tensor, context and expert groups.
// Their waits run `meanwhile`, which advances concurrent work.
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
  // Run and groups must outlive this. Collective.
  LayerGroups(const run::Run& run, const comm::Groups& groups, std::function<bool()> meanwhile);

  nn::TensorGroup& tensor() { return tensor_; }
  const nn::ContextGroup& context() const { return context_; }
  const nn::ExpertGroup& experts() const { return experts_; }
  comm::Communicator* vocabulary() { return polling_vocabulary_.get(); }  // null: use the pipeline's

  // Sums the routers' choices over the ranks whose tokens are balanced together. Collective.
  void sum_choices(std::span<std::int64_t> counts);

  // This rank's traffic from restart() to read_waits(), in the order of kLayerAxes; 0 for axes of one rank.
  using OfAxes = std::array<double, kLayerAxes.size()>;
  struct Traffic {
    OfAxes sent{}, waited{};  // bytes, seconds
  };
  void restart();
  void read_waits(const backend::DeviceClock& clock);  // blocks until the device has passed them
  Traffic traffic() const;
  // Seconds waited during the op, which must be on the clock of read_waits().
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
