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
namespace {

mesh::Shard common(const mesh::Shard& a, const mesh::Shard& b) {
  const std::int64_t begin = std::max(a.begin, b.begin), end = std::min(a.begin + a.count, b.begin + b.count);
  const std::int64_t count = std::max<std::int64_t>(end - begin, 0);
  return {.begin = begin, .count = count, .held = count};
}

}  // namespace

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
  comm::as_part_of(kName, [&] { post_hidden(); });
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

void VocabularyVisit::post_hidden() {
  const int self = layer_.ranks->rank();
  hidden_arrives_.resize(static_cast<std::size_t>(tiles()));
  for (std::int64_t number = 0; number < tiles(); ++number) {
    const Tile tile = tile_at(number);
    for (int rank = first_of_last(); rank < layer_.ranks->size(); ++rank) {
      const mesh::Shard rows = rows_of(tile, rank);
      if (rows.count == 0) continue;
      const at::Tensor part = normed_.narrow(0, rows.begin, rows.count);
      if (rank == self) {
        for_others([&](int other) { send(part, other); });
      } else {
        hidden_arrives_[static_cast<std::size_t>(number)].push_back(receive(part, rank));
      }
    }
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
  std::optional<Tile> open;
  for (std::int64_t number = 0; number < tiles(); ++number) {
    Tile next = begin_tile(number);
    if (open) finish_tile(std::move(*open));
    open = std::move(next);
  }
  if (open) finish_tile(std::move(*open));
  finish_reduction();
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
  const std::int64_t own = group_.own(), all = own * layer_.ranks->size(), self = layer_.ranks->rank();
  const at::Tensor normed = normed_.narrow(0, tile.begin, tile.tokens);
  for (int i = 0; i < own; ++i) {
    tile.logits.push_back(logits_of(normed, layer_.own[static_cast<std::size_t>(i)].matrix->weight));
    const at::Tensor mine = kernels::shard_statistics(tile.logits.back(), targets, matrix_rows(i));
    if (i == 0) tile.statistics = at::empty({all, 3, tile.tokens}, mine.options());
    tile.statistics.select(0, self * own + i).copy_(mine);
  }
  for_others([&](int other) {
    send(tile.statistics.narrow(0, self * own, own), other);
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
  const int self = layer_.ranks->rank();
  const auto rows_in_tile = [&](const mesh::Shard& rows) {
    return part.narrow(0, rows.begin - tile.begin, rows.count);
  };
  finish_reduction();
  for (int rank = first_of_last(); rank < layer_.ranks->size(); ++rank) {
    const mesh::Shard rows = rows_of(tile, rank);
    if (rows.count == 0) continue;
    if (rank != self) {
      send(rows_in_tile(rows), rank);
      continue;
    }
    reduction_.rows = rows;
    reduction_.parts.resize(static_cast<std::size_t>(layer_.ranks->size()));
    for_others([&](int other) {
      at::Tensor& theirs = reduction_.parts[static_cast<std::size_t>(other)];
      theirs = at::empty({rows.count, part.size(1)}, part.options());
      backend::recount(theirs, model::Category::Transfers);
      reduction_.receives.push_back(receive(theirs, other));
    });
    reduction_.parts[static_cast<std::size_t>(self)] = rows_in_tile(rows);
  }
  for (int i = 0; i < group_.own(); ++i) {
    kernels::accumulate_weight_gradient(layer_.own[static_cast<std::size_t>(i)].matrix->gradient,
                                        tile.logits[static_cast<std::size_t>(i)],
                                        normed_.narrow(0, tile.begin, tile.tokens));
  }
}

// Adds the parts of the latest tile; the receives were posted before its weight gradient.
void VocabularyVisit::finish_reduction() {
  if (reduction_.parts.empty()) return;
  for (comm::Request& request : reduction_.receives) request.wait();
  const int ranks = group_.ranks();
  const auto tree_of_stage = [&](int stage) -> at::Tensor& {
    const auto part = [&](int i) -> at::Tensor& {
      return reduction_.parts[static_cast<std::size_t>(stage * ranks + i)];
    };
    for (int apart = 1; apart < ranks; apart *= 2) {
      for (int i = 0; i + apart < ranks; i += 2 * apart) kernels::accumulate(part(i), part(i + apart));
    }
    return part(0);
  };
  at::Tensor& sum = tree_of_stage(0);
  for (int stage = 1; stage < layer_.stages(); ++stage) kernels::accumulate(sum, tree_of_stage(stage));
  const std::int64_t first = group_.rows_of_rank(tokens_, group_.rank()).begin;
  grad_normed_.narrow(0, reduction_.rows.begin - first, reduction_.rows.count).copy_(sum);
  reduction_ = {};
}

mesh::Shard VocabularyVisit::rows_of(const Tile& tile, int rank) const {
  const mesh::Shard whole{.begin = tile.begin, .count = tile.tokens, .held = tile.tokens};
  return common(whole, group_.rows_of_rank(tokens_, rank - first_of_last()));
}

VocabularyVisit::Tile VocabularyVisit::tile_at(std::int64_t number) const {
  const std::int64_t begin = number * layer_.tile_tokens;
  return {.begin = begin, .tokens = std::min(layer_.tile_tokens, tokens_ - begin)};
}

std::int64_t VocabularyVisit::tiles() const { return ceil_div(tokens_, layer_.tile_tokens); }

// First frees the buffers of finished sends.
void VocabularyVisit::send(const at::Tensor& buffer, int to) {
  std::erase_if(sent_, [](Sent& sent) { return sent.request.test(); });
  sent_.push_back({buffer, layer_.ranks->send(bytes_of_tensor(buffer), to, channel_)});
}

comm::Request VocabularyVisit::receive(const at::Tensor& buffer, int from) {
  return layer_.ranks->receive(bytes_of_tensor(buffer), from, channel_);
}

template <class Visit>
void VocabularyVisit::for_others(Visit&& visit) {
  for (int other = 0; other < layer_.ranks->size(); ++other) {
    if (other != layer_.ranks->rank()) visit(other);
  }
}

}  // namespace penstock::nn
