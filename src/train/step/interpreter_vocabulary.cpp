// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/error.h"
#include "nn/vocabulary_visit.h"
#include "train/step/interpreter.h"

namespace penstock::train {

using schedule::Op;
using schedule::OpKind;

// The event begins when all devices have arrived, so its duration is that of the visit.
void Interpreter::visit_vocabulary(std::uint32_t index) {
  const Op& op = list_.ops[index];
  const std::size_t here = slot(op.key);
  nn::VisitInput input{.hidden = {},
                       .targets = rows_of_slice(targets_, op),
                       .loss_scale = loss_scale(),
                       .with_gradients = mode_ == Mode::Train};
  if (const at::Tensor hidden = std::exchange(outputs_[here], {}); hidden.defined())
    input.hidden = parts_.tensor.split(hidden, place_of(op).rows());
  comm::Communicator& ranks = parts_.visitors ? *parts_.visitors : *parts_.pipeline;
  const nn::OutputShards layer = parts_.vocabulary->output(ranks);
  nn::VocabularyVisit visit(layer, static_cast<int>(schedule::Channel::Loss), input);
  comm::as_part_of(nn::VocabularyVisit::kName, [&] { ranks.barrier(); });
  restart_clocks(index);
  const nn::VisitResult result = visit.carry_out();
  losses_[here - slot({.stage = op.key.stage})] = result.loss_sum;
  if (result.grad_hidden.empty()) return;
  output_gradients_[here] = parts_.tensor.join(result.grad_hidden);
  backend::recount(output_gradients_[here], model::Category::Logits);
}

// Embeddings of this rank's tokens, each row from the rank that holds it.
at::Tensor Interpreter::embedded(const Op& op) {
  const at::Tensor tokens = rows_of_slice(step_->tokens, op);
  const std::int64_t h = run_.shape().hidden;
  const bool whole = parts_.tensor.shards() == 1;  // then every row is here
  at::Tensor rows = whole ? at::empty({tokens.numel(), h}, backend::on_device(type_))
                          : at::zeros({tokens.numel(), h}, backend::on_device(type_));
  for (int device = 0; device < parts_.pipeline->size(); ++device) {
    const auto part = embedding_parts_.extract({device, slot(op.key)});
    const bool own = device == parts_.pipeline->rank();
    PENSTOCK_CHECK(own || !part.empty(), "a forward of stage 0 waits for all parts");
    rows.index_copy_(0, parts_.vocabulary->places_of(device, tokens),
                     own ? parts_.vocabulary->embed(tokens) : part.mapped());
  }
  return parts_.tensor.join(parts_.tensor.scatter_totals(
      tokens.numel(), h, type_,
      [&](std::int64_t first, std::int64_t count) { return rows.narrow(0, first, count); }));
}

// Uses all rows, since every rank of the tensor group has some of the tokens' embeddings.
void Interpreter::add_own_embedding_gradient(const Op& op, at::Tensor gradient) {
  const at::Tensor tokens = rows_of_slice(step_->tokens, op);
  nn::GatheredRows gathered =
      parts_.tensor.gather(parts_.tensor.split(gradient, tokens.numel()), tokens.numel());
  const at::Tensor rows = gathered.whole();
  const at::Tensor places = parts_.vocabulary->places_of(parts_.pipeline->rank(), tokens);
  parts_.vocabulary->add_embedding_gradient(tokens, rows.index_select(0, places));
  if (parts_.pipeline->size() > 1) input_gradients_[slot(op.key)] = rows;
}

void Interpreter::add_received_embedding_gradient(const Op& op) {
  const auto part = embedding_parts_.extract({0, slot(op.key)});
  PENSTOCK_CHECK(!part.empty(), "an embedding's gradient is received before it is added");
  parts_.vocabulary->add_embedding_gradient(rows_of_slice(step_->tokens, op), part.mapped());
}

at::Tensor Interpreter::embedding_payload(const Op& op) {
  const at::Tensor tokens = rows_of_slice(step_->tokens, op);
  if (op.kind == OpKind::SendEmbedding) return parts_.vocabulary->embed(tokens);
  at::Tensor& gradient = input_gradients_[slot(op.key)];
  at::Tensor rows = gradient.index_select(0, parts_.vocabulary->places_of(op.peer, tokens));
  if (op.peer + 1 == parts_.pipeline->size()) gradient.reset();  // the last device to receive its part
  return rows;
}

at::Tensor Interpreter::empty_part(const Op& op) const {
  const bool from_others = op.kind == OpKind::ReceiveEmbedding;
  const int owner = from_others ? op.peer : parts_.pipeline->rank();
  const at::Tensor places = parts_.vocabulary->places_of(owner, rows_of_slice(step_->tokens, op));
  return at::empty({places.numel(), run_.shape().hidden}, backend::on_device(type_));
}

at::Tensor Interpreter::rows_of_slice(const std::vector<at::Tensor>& batch, const Op& op) const {
  return nn::row_of(own_tokens(batch, op));
}

}  // namespace penstock::train
