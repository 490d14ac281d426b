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
    for_owners([&](int owner) {
      if (owner == self()) {
        for_others([&](int other) { send(narrowed_to(normed_, block_of(tile, owner, other)), other); });
      } else if (const mesh::Shard block = block_of(tile, owner, self()); block.count > 0) {
        scattered_[static_cast<std::size_t>(number)].push_back(receive(narrowed_to(normed_, block), owner));
      }
    });
  }
}

void VocabularyVisit::hand_hidden_on() {
  hidden_arrives_.resize(static_cast<std::size_t>(tiles()));
  for (std::int64_t number = 0; number < tiles(); ++number) {
    const Tile tile = tile_at(number);
    for (comm::Request& request : scattered_[static_cast<std::size_t>(number)]) request.wait();
    for_owners([&](int owner) {
      for_others([&](int other) {
        if (other != owner) send(narrowed_to(normed_, block_of(tile, owner, self())), other);
        const mesh::Shard theirs = block_of(tile, owner, other);
        if (owner != self() && theirs.count > 0)
          hidden_arrives_[static_cast<std::size_t>(number)].push_back(
              receive(narrowed_to(normed_, theirs), other));
      });
    });
  }
}

VisitResult VocabularyVisit::carry_out() {
  const BlockScope block(Block::Output);
  comm::as_part_of(kName, [&] { visit_tiles(); });
  VisitResult result;
  if (!layer_.last()) return result;
  if (layer_.ranks->rank() == first_of_last()) result.loss_sum = loss_sum_;
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
  for (comm::Request& request : sums_arrive_) request.wait();
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
  for (comm::Request& request : hidden_arrives_[static_cast<std::size_t>(number)]) request.wait();
  const at::Tensor targets = input_.targets.narrow(0, tile.begin, tile.tokens);
  const std::int64_t own = group_.own(), all = own * layer_.ranks->size();
  const at::Tensor normed = normed_.narrow(0, tile.begin, tile.tokens);
  for (int i = 0; i < own; ++i) {
    tile.logits.push_back(logits_of(normed, layer_.own[static_cast<std::size_t>(i)].matrix->weight));
    const at::Tensor mine = kernels::shard_statistics(tile.logits.back(), targets, matrix_rows(i));
    if (i == 0) tile.statistics = at::empty({all, 3, tile.tokens}, mine.options());
    tile.statistics.select(0, self() * own + i).copy_(mine);
  }
  for_others([&](int other) {
    send(tile.statistics.narrow(0, self() * own, own), other);
    tile.gathering.push_back(receive(tile.statistics.narrow(0, other * own, own), other));
  });
  return tile;
}

void VocabularyVisit::finish_tile(Tile tile) {
  for (comm::Request& request : tile.gathering) request.wait();
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
  begin_reduction(tile, part);
  for (int i = 0; i < group_.own(); ++i) {
    kernels::accumulate_weight_gradient(layer_.own[static_cast<std::size_t>(i)].matrix->gradient,
                                        tile.logits[static_cast<std::size_t>(i)],
                                        normed_.narrow(0, tile.begin, tile.tokens));
  }
}

void VocabularyVisit::begin_reduction(const Tile& tile, const at::Tensor& part) {
  const auto in_tile = [&](mesh::Shard rows) {
    rows.begin -= tile.begin;
    return narrowed_to(part, rows);
  };
  for_owners([&](int owner) {
    for_others([&](int other) { send(in_tile(block_of(tile, owner, other)), other); });
    const mesh::Shard rows = block_of(tile, owner, self());
    if (rows.count == 0) return;
    Reduction& reduction = reductions_.emplace_back(Reduction{.owner = owner, .rows = rows});
    reduction.parts.resize(static_cast<std::size_t>(layer_.ranks->size()));
    reduction.parts[static_cast<std::size_t>(self())] = in_tile(rows);
    for_others([&](int other) {
      at::Tensor& theirs = reduction.parts[static_cast<std::size_t>(other)];
      theirs = at::empty({rows.count, part.size(1)}, part.options());
      backend::recount(theirs, model::Category::Transfers);
      reduction.receives.push_back(receive(theirs, other));
    });
  });
  reduced_ = Tile{.begin = tile.begin, .tokens = tile.tokens};
}

// Adds the parts of the latest tile; the receives were posted before its weight gradient.
void VocabularyVisit::finish_reduction() {
  if (!reduced_) return;
  for (Reduction& reduction : reductions_) {
    const at::Tensor sum = sum_of(reduction);
    if (reduction.owner == self()) {
      own_gradients(reduction.rows).copy_(sum);
    } else {
      const at::Tensor rounded = sum.to(normed_.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      backend::recount(rounded, model::Category::Transfers);
      send(rounded, reduction.owner);
    }
  }
  if (layer_.last()) {
    for_others([&](int other) {
      const mesh::Shard rows = block_of(*reduced_, self(), other);
      if (rows.count > 0) sums_arrive_.push_back(receive(own_gradients(rows), other));
    });
  }
  reductions_.clear();
  reduced_.reset();
}

// The first part, to which the others are added.
at::Tensor VocabularyVisit::sum_of(Reduction& reduction) const {
  for (comm::Request& request : reduction.receives) request.wait();
  const int ranks = group_.ranks();
  const auto tree_of_stage = [&](int stage) -> at::Tensor& {
    const auto part = [&](int i) -> at::Tensor& {
      return reduction.parts[static_cast<std::size_t>(stage * ranks + i)];
    };
    for (int apart = 1; apart < ranks; apart *= 2) {
      for (int i = 0; i + apart < ranks; i += 2 * apart) kernels::accumulate(part(i), part(i + apart));
    }
    return part(0);
  };
  at::Tensor& sum = tree_of_stage(0);
  for (int stage = 1; stage < layer_.stages(); ++stage) kernels::accumulate(sum, tree_of_stage(stage));
  return sum;
}

at::Tensor VocabularyVisit::own_gradients(const mesh::Shard& rows) const {
  const std::int64_t first = group_.rows_of_rank(tokens_, group_.rank()).begin;
  return grad_normed_.narrow(0, rows.begin - first, rows.count);
}

mesh::Shard VocabularyVisit::rows_of(const Tile& tile, int owner) const {
  const mesh::Shard own = group_.rows_of_rank(tokens_, owner - first_of_last());
  const std::int64_t begin = std::max(tile.begin, own.begin);
  const std::int64_t end = std::min(tile.begin + tile.tokens, own.begin + own.count);
  if (end <= begin) return {.begin = tile.begin};
  return {.begin = begin, .count = end - begin, .held = end - begin};
}

// The ranks of one stage already send and receive alike.
mesh::Shard VocabularyVisit::block_of(const Tile& tile, int owner, int rank) const {
  const mesh::Shard rows = rows_of(tile, owner);
  if (layer_.stages() == 1) return rank == owner ? rows : mesh::Shard{.begin = tile.begin};
  mesh::Shard block = mesh::even_block(rows.count, layer_.ranks->size(), rank);
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

comm::Request VocabularyVisit::receive(const at::Tensor& buffer, int from) {
  return layer_.ranks->receive(bytes_of_tensor(buffer), from, channel_);
}

template <class Visit>
void VocabularyVisit::for_owners(Visit&& visit) {
  for (int owner = first_of_last(); owner < layer_.ranks->size(); ++owner) visit(owner);
}

template <class Visit>
void VocabularyVisit::for_others(Visit&& visit) {
  for (int other = 0; other < layer_.ranks->size(); ++other) {
    if (other != layer_.ranks->rank()) visit(other);
  }
}

}  // namespace penstock::nn
