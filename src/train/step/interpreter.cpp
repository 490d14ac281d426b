// SPDX-License-Identifier: Apache-2.0
#include "train/step/interpreter.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "backend/copy.h"
#include "backend/device.h"
#include "backend/memory.h"
#include "base/clock.h"
#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/kernels/boundary.h"
#include "nn/parameters/parameter_maker.h"
#include "train/step/tied_embeddings.h"

namespace penstock::train {

using schedule::Op;
using schedule::OpKind;

namespace {

std::vector<at::Tensor> on_device(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> moved;
  for (const at::Tensor& tensor : tensors) moved.push_back(backend::to_device(tensor));
  return moved;
}

}  // namespace

run::StepContent content_of(const StepTokens& step) {
  run::StepContent content{.documents = {}, .fewest = step.fewest, .most = step.most};
  for (const at::Tensor& starts : step.documents) {
    content.documents.push_back(nn::lengths_of(starts));
    if (!step.most.empty()) continue;
    content.fewest.push_back(starts.size(1));
    content.most.push_back(starts.size(1));
  }
  return content;
}

Interpreter::Interpreter(const run::Run& run, const schedule::Program& program, run::Cuts cuts, Mode mode,
                         DeviceParts parts)
    : run_(run),
      mode_(mode),
      parts_(std::move(parts)),
      list_(program.devices.at(parts_.pipeline->rank())),
      slices_(std::move(cuts)),
      type_(nn::compute_type(run.precision)) {
  for (const auto& ranges : slices_) {
    first_slot_.push_back(slots_per_stage_);
    slots_per_stage_ += ranges.size();
  }
  const std::size_t slots = slots_per_stage_ * static_cast<std::size_t>(run.stages());
  for (auto* tensors : {&inputs_, &outputs_, &output_gradients_, &input_gradients_}) tensors->resize(slots);
}

void Interpreter::begin(const StepTokens& step) {
  step_ = &step;
  tokens_ = on_device(step.tokens);
  targets_ = on_device(step.targets);
  document_starts_ = on_device(step.documents);
  losses_.assign(slots_per_stage_, {});
  result_.memory.clear();
  if (parts_.ledger) parts_.ledger->take_recent_peak();
  result_.processor_seconds.assign(list_.ops.size(), 0.0);
  times_.restart(list_.ops.size());
  if (parts_.offloader) parts_.offloader->begin();
  if (parts_.exchange) parts_.exchange->begin(step.documents);
  if (parts_.replicas) parts_.replicas->begin();
}

StepResult Interpreter::run(const StepTokens& step) {
  begin(step);
  const std::function<void()> serve = [this] {
    if (parts_.meanwhile) parts_.meanwhile();
  };
  const nn::BoundaryScope boundaries(serve);
  for (std::uint32_t index = 0; index < list_.ops.size(); ++index) {
    if (parts_.recorder) parts_.recorder->enter(list_.ops[index], is_sliced(list_.ops[index]));
    const auto waits = list_.after_of(list_.ops[index]);
    for (const std::uint32_t earlier : waits) finish(earlier);
    if (!waits.empty()) free_what_is_sent();  // before the op allocates memory
    times_.begin(index);
    execute(index);
    if (parts_.ledger && lane_of(list_.ops[index].kind) == schedule::Lane::Compute) {
      result_.memory.push_back(memory_now(*parts_.ledger));
    }
    poll();
  }
  wait_for_sends();
  finish_collectives(static_cast<std::uint32_t>(list_.ops.size()));
  end_exchange();
  return end();
}

StepResult Interpreter::end() {
  const auto note = [this](std::uint32_t op, const schedule::Event& event) { times_.note(op, event); };
  if (parts_.offloader) parts_.offloader->report(times_.clock(), note);
  if (parts_.replicas) parts_.replicas->report(times_.clock(), note);
  result_.clock = times_.clock();
  result_.events = times_.events();
  if (mode_ == Mode::Evaluate) result_.loss_sums = loss_sums();
  if (parts_.exchange) result_.exchanges = parts_.exchange->times().spans(times_.clock());
  PENSTOCK_CHECK(receiving_.empty(), "every message received is used by the step");
  return std::move(result_);
}

void Interpreter::execute(std::uint32_t index) {
  processor_began_ = own_processor_time();
  if (parts_.gradients) parts_.gradients->enter(list_.ops[index]);
  carry_out(index);
  if (parts_.gradients) parts_.gradients->leave(list_.ops[index]);
  const schedule::Lane lane = schedule::lane_of(list_.ops[index].kind);
  if (lane == schedule::Lane::CopyOut || lane == schedule::Lane::CopyIn) times_.forget(index);
  if (lane != schedule::Lane::Compute && lane != schedule::Lane::Collective) return;
  // The CPU's time says nothing about work that a GPU does.
  if (backend::compute_device().is_cpu())
    result_.processor_seconds[index] = own_processor_time() - processor_began_;
  times_.end(index);
}

Seconds Interpreter::own_processor_time() const {
  return processor_seconds_of_this_thread() - (parts_.exchange ? parts_.exchange->processor_seconds() : 0);
}

// A device must not leave a step while others still send requests.
void Interpreter::end_exchange() {
  if (parts_.exchange) parts_.exchange->drain();
}

void Interpreter::carry_out(std::uint32_t index) {
  const Op& op = list_.ops[index];
  const std::size_t here = slot(op.key);
  switch (op.kind) {
    case OpKind::Forward:
      return forward(op);
    case OpKind::Backward:
    case OpKind::BackwardInput:
      return backward(op);
    case OpKind::BackwardWeight:
      return parts_.stages.at(op.key.stage).backward_weight({op.key.micro_batch, op.key.slice});
    case OpKind::SendForward:
      return send(index, std::exchange(outputs_[here], {}));
    case OpKind::SendBackward:
      return send(index, std::exchange(input_gradients_[here], {}));
    case OpKind::ReceiveForward:
    case OpKind::ReceiveBackward:
    case OpKind::ReceiveEmbedding:
    case OpKind::ReceiveEmbeddingGradient:
      return receive(index);
    case OpKind::SendEmbedding:
    case OpKind::SendEmbeddingGradient:
      return send(index, embedding_payload(op));
    case OpKind::VocabularyLoss:
      return visit_vocabulary(index);
    case OpKind::EmbeddingGradient:
      return add_received_embedding_gradient(op);
    case OpKind::GatherWeights:
      return parts_.replicas->start(index, op);
    case OpKind::ReleaseWeights:
      return parts_.replicas->release(op);
    case OpKind::ReduceGradients:
      return reduce_gradients(index);
    case OpKind::OptimizerStep:
      return step_optimizer(index);
    case OpKind::Offload:
      return parts_.offloader->offload(index, parts_.stages.at(op.key.stage), is_sliced(op));
    case OpKind::Reload:
      return parts_.offloader->reload(index);
  }
}

void Interpreter::step_optimizer(std::uint32_t index) {
  end_exchange();
  wait_for_sends();        // a host that waits for its GPU sends nothing
  backend::synchronize();  // a host far ahead of its GPU would take the others for stuck
  parts_.sum_losses(result_.loss_sums = loss_sums());
  restart_clocks(index);  // a rank that came early has waited for the last one there
  parts_.optimizer_step();
}

void Interpreter::forward(const Op& op) {
  const auto& range = slices_[op.key.micro_batch][op.key.slice];
  const auto j = static_cast<std::size_t>(op.key.micro_batch);
  const std::size_t here = slot(op.key);
  const bool embeds = op.key.stage == 0 && parts_.vocabulary;
  const bool first = op.key.stage == 0 && !parts_.vocabulary;
  const bool last = op.key.stage + 1 == run_.stages() && !parts_.vocabulary;

  const bool last_slice = range.begin + range.length == step_->tokens[j].size(1);
  nn::ForwardInput input{
      .key = {op.key.micro_batch, op.key.slice}, .place = place_of(op), .last_slice = last_slice};
  if (first) input.tokens = own_tokens(tokens_, op);
  if (!first) input.hidden = embeds ? embedded(op) : std::exchange(inputs_[here], {});
  if (last) {
    input.targets = own_tokens(targets_, op);
    input.loss_scale = loss_scale();
  }
  const auto partners = partners_of(op);
  input.partners = partners.get();
  nn::Stage& stage = parts_.stages.at(op.key.stage);
  const bool evaluating = mode_ == Mode::Evaluate;
  nn::ForwardOutput output = evaluating ? stage.evaluate(input) : stage.forward(input);
  if (evaluating && last_slice) stage.forget(op.key.micro_batch);

  if (last) {
    losses_[first_slot_[j] + static_cast<std::size_t>(op.key.slice)] = output.loss_sum;
  } else if (parts_.stages.contains(op.key.stage + 1)) {
    inputs_[slot(op.key.at_stage(op.key.stage + 1))] = std::move(output.hidden);
  } else {
    outputs_[here] = std::move(output.hidden);
  }
}

void Interpreter::backward(const Op& op) {
  const std::size_t here = slot(op.key);
  const nn::SliceKey key{op.key.micro_batch, op.key.slice};
  nn::Stage& stage = parts_.stages.at(op.key.stage);
  const at::Tensor gradient = std::exchange(output_gradients_[here], {});
  const auto partners = partners_of(op);
  at::Tensor passed_on = op.kind == OpKind::Backward ? stage.backward(key, gradient, partners.get())
                                                     : stage.backward_input(key, gradient, partners.get());
  if (op.key.stage == 0) {
    if (parts_.vocabulary) add_own_embedding_gradient(op, std::move(passed_on));
    return;
  }
  if (parts_.stages.contains(op.key.stage - 1)) {
    output_gradients_[slot(op.key.at_stage(op.key.stage - 1))] = std::move(passed_on);
  } else {
    input_gradients_[here] = std::move(passed_on);
  }
}

std::unique_ptr<nn::AttentionPartners> Interpreter::partners_of(const Op& op) {
  return parts_.exchange ? parts_.exchange->partners_of(op) : nullptr;
}

void Interpreter::reduce_gradients(std::uint32_t index) {
  const Op& op = list_.ops[index];
  if (op.group == mesh::Group::Replica) return parts_.replicas->start(index, op);
  if (index > 0) finish_collectives(index - 1);  // both sides are then sums over the replicas
  if (op.peer >= 0) meet_tied_side(op.peer, parts_.pipeline);
  restart_clocks(index);  // the wait for the other side is no part of the sum
  reduce_tied_gradients(parts_.stages, op.peer, parts_.pipeline);
}

// All that started before this op or with it.
void Interpreter::finish_collectives(std::uint32_t index) {
  if (parts_.replicas) parts_.replicas->finish(index, parts_.meanwhile);
}

// Finishes an op that another waits for. Compute ops are done already: this thread runs them one by one.
void Interpreter::finish(std::uint32_t index) {
  const OpKind kind = list_.ops[index].kind;
  if (schedule::is_receive(kind)) return finish_receive(index);
  if (schedule::is_send(kind)) return finish_send(index);
  if (schedule::lane_of(kind) == schedule::Lane::Collective) return finish_collectives(index);
  if (kind != OpKind::Offload && kind != OpKind::Reload) return;
  parts_.offloader->finish(index);
}

nn::SlicePlace Interpreter::place_of(const Op& op) const {
  const auto& range = slices_[op.key.micro_batch][op.key.slice];
  nn::SlicePlace place = parts_.context.place(run_.sequences(), range.length, range.begin);
  if (step_->documents.empty()) return place;
  const auto j = static_cast<std::size_t>(op.key.micro_batch);
  place.documents = {.starts = step_->documents[j],
                     .device_starts = document_starts_[j],
                     .restart_positions = run_.options.data.positions == "document"};
  return place;
}

std::vector<at::Tensor> Interpreter::own_tokens(const std::vector<at::Tensor>& batch, const Op& op) const {
  return nn::ContextGroup::views_at(place_of(op), batch[static_cast<std::size_t>(op.key.micro_batch)]);
}

std::int64_t Interpreter::own_rows(const Op& op) const { return parts_.tensor.own_rows(place_of(op).rows()); }

bool Interpreter::is_sliced(const Op& op) const { return slices_[op.key.micro_batch].size() > 1; }

double Interpreter::loss_scale() const {
  return 1.0 / static_cast<double>(std::max<std::int64_t>(step_->target_count, 1));
}

std::size_t Interpreter::slot(const schedule::Key& key) const {
  return static_cast<std::size_t>(key.stage) * slots_per_stage_ + first_slot_[key.micro_batch] +
         static_cast<std::size_t>(key.slice);
}

void Interpreter::restart_clocks(std::uint32_t index) {
  times_.begin(index);
  processor_began_ = own_processor_time();
}

std::vector<double> Interpreter::loss_sums() const {
  std::vector<double> sums;
  for (const nn::kernels::LossSum& loss : losses_) sums.push_back(loss.value());
  return sums;
}

}  // namespace penstock::train
