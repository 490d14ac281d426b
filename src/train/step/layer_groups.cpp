// SPDX-License-Identifier: Apache-2.0
#include "train/step/layer_groups.h"

#include <algorithm>
#include <utility>

#include "comm/polling.h"
#include "comm/single.h"
#include "run/context.h"

namespace penstock::train {

LayerGroups::LayerGroups(const run::Run& run, const comm::Groups& groups, std::function<bool()> meanwhile)
    : run_(run),
      meanwhile_(std::move(meanwhile)),
      tensor_(make_tensor(groups)),
      context_(make_context(groups)),
      experts_(make_experts(groups)) {
  prepare_balance(groups);
}

std::unique_ptr<comm::Communicator> LayerGroups::polling(comm::Communicator& ranks) const {
  return comm::make_polling(ranks, meanwhile_, run_.options.train.timeout);
}

nn::TensorGroup LayerGroups::make_tensor(const comm::Groups& groups) {
  if (run_.tensor_shards() == 1) return {};
  if (groups.tensor) {
    polling_tensor_ = polling(**groups.tensor);
    polling_vocabulary_ = polling(*groups.vocabulary);
  } else {
    polling_tensor_ = comm::make_single();
  }
  return {*polling_tensor_, run_.tensor_shards(), run_.options.parallel.tp_overlap};
}

nn::ContextGroup LayerGroups::make_context(const comm::Groups& groups) {
  if (run_.mesh.context == 1) return {};
  polling_context_ = polling(**groups.context);
  const model::ContextSplit split = run::context_split(run_.options);
  const auto mode = split.gathers ? nn::ContextMode::Gather : nn::ContextMode::Query;
  return {*polling_context_, static_cast<int>(split.heads), mode};
}

nn::ExpertGroup LayerGroups::make_experts(const comm::Groups& groups) {
  if (!groups.experts) return {};
  polling_experts_ = polling(**groups.experts);
  return nn::ExpertGroup(*polling_experts_);
}

// A micro-batch's tokens are on its tensor and context ranks, a step's also on all replicas.
void LayerGroups::prepare_balance(const comm::Groups& groups) {
  if (run_.shape().experts == 1 || run_.options.moe.balance_coefficient == 0) return;
  const auto add = [&](comm::Communicator& ranks) {
    if (ranks.size() > 1) balancing_.push_back(polling(ranks));
  };
  if (groups.tensor) add(**groups.tensor);
  const bool over_step = run_.options.moe.balance_over == "step";
  if (over_step && groups.replicas) {
    add(*groups.replicas->sharding);
    add(*groups.replicas->copying);
  } else if (!over_step && groups.context) {
    add(**groups.context);
  }
}

void LayerGroups::sum_choices(std::span<std::int64_t> counts) {
  comm::as_part_of("the sum of the routers' choices", [&] {
    for (const auto& ranks : balancing_)
      ranks->all_reduce(counts.data(), counts.size(), comm::Type::I64, comm::Reduction::Sum);
  });
}

void LayerGroups::restart() {
  sent_before_ = all_sent();
  take_waits();
}

LayerGroups::OfAxes LayerGroups::all_sent() const {
  return {as_double(tensor_.sent()), as_double(context_.sent()), as_double(experts_.sent())};
}

std::array<nn::Waits, kLayerAxes.size()> LayerGroups::take_waits() {
  return {tensor_.take_waits(), context_.take_waits(), experts_.take_waits()};
}

void LayerGroups::read_waits(const backend::DeviceClock& clock) {
  const auto taken = take_waits();
  for (std::size_t axis = 0; axis < kLayerAxes.size(); ++axis) {
    waits_[axis].clear();
    for (const nn::Wait& wait : taken[axis])
      waits_[axis].push_back({.start = clock.seconds(wait.start), .end = clock.seconds(wait.end)});
  }
}

LayerGroups::Traffic LayerGroups::traffic() const {
  Traffic since{.sent = all_sent(), .waited = {}};
  for (std::size_t axis = 0; axis < kLayerAxes.size(); ++axis) {
    since.sent[axis] -= sent_before_[axis];
    for (const schedule::Event& wait : waits_[axis]) since.waited[axis] += wait.end - wait.start;
  }
  return since;
}

Seconds LayerGroups::waited_during(const schedule::Event& op) const {
  Seconds waited = 0;
  for (const auto& waits : waits_) {
    auto wait = std::ranges::lower_bound(waits, op.start, {}, &schedule::Event::start);
    for (; wait != waits.end() && wait->start < op.end; ++wait) waited += wait->end - wait->start;
  }
  return waited;
}

}  // namespace penstock::train
