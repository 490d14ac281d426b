// SPDX-License-Identifier: Apache-2.0
#include "train/step/gradient_buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "backend/memory.h"
#include "base/error.h"
#include "nn/parameters/parameter_maker.h"
#include "run/replicas.h"
#include "schedule/units.h"

namespace penstock::train {

using schedule::Op;
using schedule::OpKind;

GradientBuffers::GradientBuffers(const run::Run& run, const schedule::DeviceProgram& list, Units& units)
    : run_(run),
      units_(units),
      has_vocabulary_(units.contains(schedule::vocabulary_unit(run.program))),
      groups_(run::groups_of_replica(run.options)),
      micro_batches_of_group_(run.program.micro_batches() / groups_) {
  for (auto& [number, unit] : units) {
    for (nn::Parameter* parameter : unit.parameters) {
      Members& members = classes_[{number, phase_of(*parameter)}];
      members.buffers.push_back({.parameter = parameter, .open = {}, .complete = {}, .spare = {}, .own = {}});
    }
  }
  expect(list);
}

void GradientBuffers::expect(const schedule::DeviceProgram& list) {
  for (auto& [one, members] : classes_) members.expected.assign(static_cast<std::size_t>(groups_), 0);
  for (const Op& op : list.ops) {
    for (const Class& one : classes_of(op))
      ++classes_.at(one).expected[static_cast<std::size_t>(group_of(op))];
  }
  for (auto& [one, members] : classes_) members.left = members.expected;
}

// The output layer's gradients are formed in its forward, norms' and embedding's with the input gradients.
GradientBuffers::Phase GradientBuffers::phase_of(const nn::Parameter& parameter) {
  if (parameter.name == nn::kOutputName || parameter.name == nn::kFinalNormName) return Phase::Output;
  return parameter.is_matrix && parameter.name != nn::kEmbeddingName ? Phase::Weight : Phase::Input;
}

std::vector<GradientBuffers::Class> GradientBuffers::classes_of(const Op& op) const {
  std::vector<Class> classes;
  const auto add = [&](int unit, Phase phase) {
    if (classes_.contains({unit, phase})) classes.push_back({unit, phase});
  };
  const int stage = op.key.stage, vocabulary = schedule::vocabulary_unit(run_.program);
  if (op.kind == OpKind::Forward) add(stage, Phase::Output);
  if (is_backward(op.kind)) add(stage, Phase::Input);
  if (adds_weight_gradients(op.kind)) add(stage, Phase::Weight);
  if (!has_vocabulary_) return classes;
  if (op.kind == OpKind::VocabularyLoss) add(vocabulary, Phase::Output);
  if (op.kind == OpKind::EmbeddingGradient || (is_backward(op.kind) && stage == 0))
    add(vocabulary, Phase::Input);
  return classes;
}

std::int64_t GradientBuffers::group_of(const Op& op) const {
  return std::min(op.key.micro_batch / micro_batches_of_group_, groups_ - 1);
}

void GradientBuffers::enter(const Op& op) {
  for (const Class& one : classes_of(op)) {
    if (units_.at(one.unit).sharded_weights) make_room(one.unit);
    enter(classes_.at(one), group_of(op));
  }
}

void GradientBuffers::leave(const Op& op) {
  for (const Class& one : classes_of(op)) {
    Members& members = classes_.at(one);
    if (--members.left[static_cast<std::size_t>(group_of(op))] == 0) complete(members, group_of(op));
  }
}

// Allocates all of a unit's buffers together.
void GradientBuffers::make_room(int unit) {
  for (Phase phase : {Phase::Output, Phase::Input, Phase::Weight}) {
    const auto found = classes_.find({unit, phase});
    if (found == classes_.end() || found->second.current >= 0) continue;
    for (Buffers& buffers : found->second.buffers) {
      at::Tensor& gradient = buffers.parameter->gradient;
      if (gradient.defined() && !gradient.is_same(buffers.own)) continue;
      const backend::CategoryScope scope(model::Category::Gradients);
      for (int i = run::gradient_buffers(run_.options); i > 0; --i) {
        buffers.spare.push_back(
            at::empty(buffers.parameter->held_sizes(), buffers.parameter->master.options()));
      }
      gradient = zeros(buffers);
    }
  }
}

void GradientBuffers::enter(Members& members, std::int64_t group) {
  if (members.current == group) return;
  for (Buffers& buffers : members.buffers) {
    at::Tensor& gradient = buffers.parameter->gradient;
    if (members.current >= 0) {
      if (gradient.defined()) buffers.open[members.current] = std::exchange(gradient, {});
      const auto kept = buffers.open.extract(group);
      gradient = kept.empty() ? zeros(buffers) : kept.mapped();
    }
  }
  members.current = group;
}

void GradientBuffers::complete(Members& members, std::int64_t group) {
  if (groups_ == 1) return;
  for (Buffers& buffers : members.buffers) {
    at::Tensor sum = std::exchange(buffers.parameter->gradient, {});
    Node node{0, group};
    for (std::int64_t nodes = groups_; nodes > 1; nodes = (nodes + 1) / 2) {
      const Node beside{node.level, node.index ^ 1};
      const auto neighbour = buffers.complete.extract(beside);
      if (neighbour.empty() && beside.index < nodes) break;
      if (!neighbour.empty()) {
        const bool first = beside.index < node.index;
        at::Tensor lower = first ? neighbour.mapped() : sum, upper = first ? sum : neighbour.mapped();
        sum = lower.add_(upper);
        buffers.spare.push_back(upper);
      }
      node = {node.level + 1, node.index / 2};
    }
    const bool all = std::int64_t{1} << node.level >= groups_;
    (all ? buffers.parameter->gradient : buffers.complete[node]) = sum;
  }
}

at::Tensor GradientBuffers::zeros(Buffers& buffers) const {
  if (!buffers.spare.empty()) {
    at::Tensor buffer = std::move(buffers.spare.back());
    buffers.spare.pop_back();
    return buffer.zero_();
  }
  const backend::CategoryScope scope(model::Category::Gradients);
  return at::zeros(buffers.parameter->held_sizes(), buffers.parameter->master.options());
}

void GradientBuffers::drop(int unit) {
  for (auto& [one, members] : classes_) {
    if (one.unit != unit) continue;
    for (Buffers& buffers : members.buffers) {
      nn::Parameter& parameter = *buffers.parameter;
      if (!buffers.own.defined()) {
        const backend::CategoryScope scope(model::Category::Gradients);
        buffers.own = at::empty(parameter.master.sizes(), parameter.master.options());
      }
      buffers.own.view({-1}).copy_(parameter.own_part(parameter.gradient).view({-1}));
      parameter.gradient = buffers.own;
      buffers.spare.clear();
    }
  }
}

void GradientBuffers::clear() {
  for (auto& [one, members] : classes_) {
    members.left = members.expected;
    members.current = -1;
    if (units_.at(one.unit).sharded_weights) continue;
    for (Buffers& buffers : members.buffers) buffers.parameter->gradient.zero_();
  }
}

}  // namespace penstock::train
