// SPDX-License-Identifier: Apache-2.0
#include "nn/vocabulary_visit.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/memory.h"
#include "base/error.h"
#include "base/whole.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/sharded_softmax.h"
#include "nn/kernels/sum_parts.h"
#include "nn/output_layer.h"

namespace penstock::nn {

VocabularyVisit::VocabularyVisit(const OutputShards& layer, int channel, const VisitInput& input)
    : layer_(layer), group_(*layer.group), channel_(channel), input_(input), tokens_(input.targets.numel()) {
  PENSTOCK_CHECK(layer.ranks->size() % group_.ranks() == 0, "every stage has as many ranks");
  if (layer.last()) {
    normalise();
    if (input.with_gradients) grad_normed_ = room_for(group_.own_rows(tokens_));
  } else {
    const backend::CategoryScope scope(model::Category::Transfers);
    normed_ = room_for(tokens_);
  }
  comm::as_part_of(kName, [&] { scatter_hidden(); });
}

at::Tensor VocabularyVisit::room_for(std::int64_t rows) const {
  const at::Tensor& matrix = layer_.own.front().matrix->weight;
  return at::empty({rows, matrix.size(1)}, matrix.options());
}

// Writes the own shards' normed rows to their places among all rows.
void VocabularyVisit::normalise() {
  Rows blocks;
  for (std::size_t i = 0; i < layer_.own.size(); ++i) {
    auto [output, scale] =
        kernels::rms_norm(input_.hidden[i], layer_.own[i].norm->weight, layer_.norm_epsilon);
    blocks.push_back(std::move(output));
    scales_.push_back(std::move(scale));
  }
  if (group_.shards() == 1) {
    normed_ = blocks.front();
    return;
  }
  normed_ = room_for(tokens_);
  for (int i = 0; i < group_.own(); ++i) {
    const mesh::Shard rows = group_.rows_of_shard(tokens_, group_.shard_of(i));
    normed_.narrow(0, rows.begin, rows.count).copy_(blocks[static_cast<std::size_t>(i)]);
  }
}

void VocabularyVisit::scatter_hidden() {
  scattered_.resize(static_cast<std::size_t>(tiles()));
  for (std::int64_t number = 0; number < tiles(); ++number) {
    const Tile tile = tile_at(number);
    if (layer_.last()) {
      for_other_stages(
          [&](int other) { send(narrowed_to(normed_, block_of(tile, other)), rank_at(other, column())); });
    } else {
      receive(narrowed_to(normed_, block_of(tile, stage())), rank_at(last_stage(), column()),
              scattered_[static_cast<std::size_t>(number)]);
    }
  }
}

void VocabularyVisit::hand_hidden_on() {
  std::vector<std::vector<comm::Request>> column_arrives(static_cast<std::size_t>(tiles()));
  for (std::int64_t number = 0; number < tiles(); ++number) {
    const Tile tile = tile_at(number);
    comm::wait_all(scattered_[static_cast<std::size_t>(number)]);
    for_other_stages([&](int other) {
      const int there = rank_at(other, column());
      if (other != last_stage()) send(narrowed_to(normed_, block_of(tile, stage())), there);
      if (!layer_.last())
        receive(narrowed_to(normed_, block_of(tile, other)), there,
                column_arrives[static_cast<std::size_t>(number)]);
    });
  }
  hidden_arrives_.resize(static_cast<std::size_t>(tiles()));
  for (std::int64_t number = 0; number < tiles(); ++number) {
    const Tile tile = tile_at(number);
    comm::wait_all(column_arrives[static_cast<std::size_t>(number)]);
    for_other_columns([&](int other) {
      send(narrowed_to(normed_, rows_of(tile, column())), rank_at(stage(), other));
      receive(narrowed_to(normed_, rows_of(tile, other)), rank_at(stage(), other),
              hidden_arrives_[static_cast<std::size_t>(number)]);
    });
  }
}

VisitResult VocabularyVisit::carry_out() {
  const BlockScope block(Block::Output);
  comm::as_part_of(kName, [&] { visit_tiles(); });
  VisitResult result;
  if (!layer_.last()) return result;
  if (column() == 0) result.loss_sum = loss_sum_;
  if (input_.with_gradients) result.grad_hidden = norm_backward();
  return result;
}

void VocabularyVisit::visit_tiles() {
  hand_hidden_on();
  std::optional<Tile> open;
  for (std::int64_t number = 0; number < tiles(); ++number) {
    Tile next = begin_tile(number);
    if (open) finish_tile(std::move(*open));
    open = std::move(next);
  }
  if (open) finish_tile(std::move(*open));
  finish_reduction();
  comm::wait_all(sums_arrive_);
  for (Sent& sent : sent_) sent.request.wait();
}

Rows VocabularyVisit::norm_backward() {
  Rows grad_hidden;
  const Rows grad_normed = group_.split(grad_normed_, tokens_);
  for (std::size_t i = 0; i < layer_.own.size(); ++i) {
    Parameter& norm = *layer_.own[i].norm;
    grad_hidden.push_back(kernels::rms_norm_backward(grad_normed[i], input_.hidden[i], norm.weight,
                                                     scales_[i], {}, norm.gradient));
  }
  return grad_hidden;
}

VocabularyVisit::Tile VocabularyVisit::begin_tile(std::int64_t number) {
  Tile tile = tile_at(number);
  comm::wait_all(hidden_arrives_[static_cast<std::size_t>(number)]);
  const at::Tensor targets = input_.targets.narrow(0, tile.begin, tile.tokens);
  const std::int64_t own = group_.own(), all = own * layer_.ranks->size();
  const at::Tensor normed = normed_.narrow(0, tile.begin, tile.tokens);
  for (int i = 0; i < own; ++i) {
    tile.logits.push_back(logits_of(normed, layer_.own[static_cast<std::size_t>(i)].matrix->weight));
    const at::Tensor mine = kernels::shard_statistics(tile.logits.back(), targets, matrix_rows(i));
    if (i == 0) tile.statistics = at::empty({all, 3, tile.tokens}, mine.options());
    tile.statistics.select(0, self() * own + i).copy_(mine);
  }
  for (int other = 0; other < layer_.ranks->size(); ++other) {
    if (other == self()) continue;
    send(tile.statistics.narrow(0, self() * own, own), other);
    receive(tile.statistics.narrow(0, other * own, own), other, tile.gathering);
  }
  return tile;
}

void VocabularyVisit::finish_tile(Tile tile) {
  comm::wait_all(tile.gathering);
  const at::Tensor targets = input_.targets.narrow(0, tile.begin, tile.tokens);
  const auto softmax = kernels::combine_statistics(tile.statistics, targets, matrix_rows(0).held);
  loss_sum_ += softmax.loss;
  if (input_.with_gradients) form_gradients(tile, targets, softmax.scale);
}

// Returns the sum over the own shards; overwrites the logits with their gradients.
at::Tensor VocabularyVisit::partial_gradient(Tile& tile, const at::Tensor& targets, const at::Tensor& scale) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < group_.own(); ++i) {
    at::Tensor& logits = tile.logits[static_cast<std::size_t>(i)];
    kernels::shard_gradient(logits, targets, matrix_rows(i), scale, input_.loss_scale);
    const Parameter& matrix = *layer_.own[static_cast<std::size_t>(i)].matrix;
    parts.push_back(kernels::product_backward_wide(logits, matrix.weight));
  }
  at::Tensor part =
      parts.size() == 1 ? parts.front() : kernels::sum_parts(parts, parts.front().scalar_type());
  backend::recount(part, model::Category::Transfers);
  return part;
}

void VocabularyVisit::form_gradients(Tile& tile, const at::Tensor& targets, const at::Tensor& scale) {
  const at::Tensor part = partial_gradient(tile, targets, scale);
  finish_reduction();
  share_parts(tile, part);
  for (int i = 0; i < group_.own(); ++i) {
    kernels::accumulate_weight_gradient(layer_.own[static_cast<std::size_t>(i)].matrix->gradient,
                                        tile.logits[static_cast<std::size_t>(i)],
                                        normed_.narrow(0, tile.begin, tile.tokens));
  }
  add_in_stage();
}

// Sends each column of the stage this rank's part of its rows.
void VocabularyVisit::share_parts(const Tile& tile, const at::Tensor& part) {
  const auto in_tile = [&](mesh::Shard rows) {
    rows.begin -= tile.begin;
    return narrowed_to(part, rows);
  };
  Reduction& reduction = reduction_.emplace(Reduction{.tile = {.begin = tile.begin, .tokens = tile.tokens}});
  const mesh::Shard rows = rows_of(tile, column());
  reduction.of_ranks.resize(static_cast<std::size_t>(group_.ranks()));
  reduction.of_ranks[static_cast<std::size_t>(column())] = in_tile(rows);
  for_other_columns([&](int other) {
    send(in_tile(rows_of(tile, other)), rank_at(stage(), other));
    at::Tensor& theirs = reduction.of_ranks[static_cast<std::size_t>(other)];
    theirs = room_for_parts(rows.count, part);
    receive(theirs, rank_at(stage(), other), reduction.receives);
  });
}

// Adds the parts of the stage's ranks as a tree, and sends each stage its block of the sum.
void VocabularyVisit::add_in_stage() {
  Reduction& reduction = *reduction_;
  comm::wait_all(reduction.receives);
  reduction.receives.clear();
  std::vector<at::Tensor> parts = std::exchange(reduction.of_ranks, {});
  const std::size_t ranks = parts.size();
  const mesh::Shard rows = rows_of(reduction.tile, column());
  for (std::size_t apart = 1; apart < ranks && rows.count > 0; apart *= 2) {
    for (std::size_t i = 0; i + apart < ranks; i += 2 * apart)
      kernels::accumulate(parts[i], parts[i + apart]);
  }
  const auto in_rows = [&](mesh::Shard block) {
    block.begin -= rows.begin;
    return narrowed_to(parts.front(), block);
  };
  reduction.of_stages.resize(static_cast<std::size_t>(layer_.stages()));
  const mesh::Shard own = block_of(reduction.tile, stage());
  reduction.of_stages[static_cast<std::size_t>(stage())] = in_rows(own);
  for_other_stages([&](int other) {
    send(in_rows(block_of(reduction.tile, other)), rank_at(other, column()));
    at::Tensor& theirs = reduction.of_stages[static_cast<std::size_t>(other)];
    theirs = room_for_parts(own.count, parts.front());
    receive(theirs, rank_at(other, column()), reduction.receives);
  });
}

// Adds the stages in order, for the last of them.
void VocabularyVisit::finish_reduction() {
  if (!reduction_) return;
  comm::wait_all(reduction_->receives);
  const mesh::Shard own = block_of(reduction_->tile, stage());
  at::Tensor& sum = reduction_->of_stages.front();
  for (int other = 1; other < layer_.stages() && own.count > 0; ++other)
    kernels::accumulate(sum, reduction_->of_stages[static_cast<std::size_t>(other)]);
  if (layer_.last()) {
    if (own.count > 0) own_gradients(own).copy_(sum);
    for_other_stages([&](int other) {
      const mesh::Shard theirs = block_of(reduction_->tile, other);
      if (theirs.count > 0) receive(own_gradients(theirs), rank_at(other, column()), sums_arrive_);
    });
  } else if (own.count > 0) {
    const at::Tensor rounded = sum.to(normed_.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    backend::recount(rounded, model::Category::Transfers);
    send(rounded, rank_at(last_stage(), column()));
  }
  reduction_.reset();
}

at::Tensor VocabularyVisit::room_for_parts(std::int64_t rows, const at::Tensor& like) const {
  const at::Tensor parts = at::empty({rows, like.size(1)}, like.options());
  backend::recount(parts, model::Category::Transfers);
  return parts;
}

at::Tensor VocabularyVisit::own_gradients(const mesh::Shard& rows) const {
  const std::int64_t first = group_.rows_of_rank(tokens_, column()).begin;
  return grad_normed_.narrow(0, rows.begin - first, rows.count);
}

mesh::Shard VocabularyVisit::rows_of(const Tile& tile, int column) const {
  const mesh::Shard all = group_.rows_of_rank(tokens_, column);
  const std::int64_t begin = std::max(tile.begin, all.begin);
  const std::int64_t end = std::min(tile.begin + tile.tokens, all.begin + all.count);
  if (end <= begin) return {.begin = tile.begin};
  return {.begin = begin, .count = end - begin, .held = end - begin};
}

mesh::Shard VocabularyVisit::block_of(const Tile& tile, int stage) const {
  const mesh::Shard rows = rows_of(tile, column());
  mesh::Shard block = mesh::even_block(rows.count, layer_.stages(), stage);
  block.begin += rows.begin;
  return block;
}

VocabularyVisit::Tile VocabularyVisit::tile_at(std::int64_t number) const {
  const std::int64_t begin = number * layer_.tile_tokens;
  return {.begin = begin, .tokens = std::min(layer_.tile_tokens, tokens_ - begin)};
}

std::int64_t VocabularyVisit::tiles() const { return ceil_div(tokens_, layer_.tile_tokens); }

// First frees the buffers of finished sends.
void VocabularyVisit::send(const at::Tensor& buffer, int to) {
  if (buffer.numel() == 0) return;
  std::erase_if(sent_, [](Sent& sent) { return sent.request.test(); });
  sent_.push_back({buffer, layer_.ranks->send(bytes_of_tensor(buffer), to, channel_)});
}

void VocabularyVisit::receive(const at::Tensor& buffer, int from, std::vector<comm::Request>& requests) {
  if (buffer.numel() > 0) requests.push_back(layer_.ranks->receive(bytes_of_tensor(buffer), from, channel_));
}

template <class Visit>
void VocabularyVisit::for_other_columns(Visit&& visit) const {
  for (int other = 0; other < group_.ranks(); ++other) {
    if (other != column()) visit(other);
  }
}

template <class Visit>
void VocabularyVisit::for_other_stages(Visit&& visit) const {
  for (int other = 0; other < layer_.stages(); ++other) {
    if (other != stage()) visit(other);
  }
}

}  // namespace penstock::nn
