// SPDX-License-Identifier: Apache-2.0
#include "nn/vocabulary_visit.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "nn/allocator.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/sharded_softmax.h"
#include "nn/output_layer.h"

namespace penstock::nn {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  PENSTOCK_CHECK(tensor.is_contiguous(), "messages are contiguous");
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace

VocabularyVisit::VocabularyVisit(VocabularyShard& shard, comm::Communicator& pipeline, int channel,
                                 const VisitInput& input)
    : shard_(shard),
      pipeline_(pipeline),
      channel_(channel),
      input_(input),
      tile_tokens_(shard.options().loss_tile_tokens),
      last_(pipeline.size() - 1) {
  PENSTOCK_CHECK(pipeline.size() == shard.options().parts, "each device has its shard");
  const std::int64_t count = input.targets.numel();
  const auto tile_of = [&](std::int64_t tile) {
    const std::int64_t begin = tile * tile_tokens_;
    return normed_.narrow(0, begin, std::min(tile_tokens_, count - begin));
  };
  if (shard.is_last()) {
    auto normed =
        kernels::rms_norm(input.hidden, shard.final_norm().weight, shard.options().shape.norm_epsilon);
    normed_ = normed.output;
    scale_ = normed.scale;
    if (input.with_gradients) grad_normed_ = at::empty_like(normed_);
  } else {
    const CategoryScope scope(Category::Transfers);
    normed_ = at::empty({count, shard.options().shape.hidden}, shard.embedding().weight.options());
  }
  for (std::int64_t tile = 0; tile < tiles(); ++tile) {
    at::Tensor rows = tile_of(tile);
    if (shard.is_last()) {
      for_others([&](int other) { send(rows, other); });
    } else {
      hidden_arrives_.push_back(receive(rows, last_));
    }
  }
  pipeline.barrier();
}

VisitResult VocabularyVisit::carry_out() {
  const BlockScope block(Block::Output);
  std::optional<Tile> open;
  for (std::int64_t number = 0; number < tiles(); ++number) {
    Tile next = begin_tile(number);
    if (open) finish_tile(std::move(*open));
    open = std::move(next);
  }
  if (open) finish_tile(std::move(*open));
  finish_reduction();
  for (Sent& sent : sent_) sent.request.wait();
  VisitResult result;
  if (!shard_.is_last()) return result;
  result.loss_sum = loss_sum_;
  if (input_.with_gradients) {
    Parameter& norm = shard_.final_norm();
    result.grad_hidden =
        kernels::rms_norm_backward(grad_normed_, input_.hidden, norm.weight, scale_, {}, norm.gradient);
  }
  return result;
}

VocabularyVisit::Tile VocabularyVisit::begin_tile(std::int64_t number) {
  Tile tile{.begin = number * tile_tokens_};
  tile.tokens = std::min(tile_tokens_, input_.targets.numel() - tile.begin);
  if (!hidden_arrives_.empty()) hidden_arrives_[number].wait();
  tile.logits = logits_of(normed_.narrow(0, tile.begin, tile.tokens), shard_.output().weight);
  const at::Tensor mine = kernels::shard_statistics(
      tile.logits, input_.targets.narrow(0, tile.begin, tile.tokens), shard_.shard());
  tile.statistics = at::empty({pipeline_.size(), 3, tile.tokens}, mine.options());
  tile.statistics.select(0, pipeline_.rank()).copy_(mine);
  for_others([&](int other) {
    send(tile.statistics.select(0, pipeline_.rank()), other);
    at::Tensor theirs = tile.statistics.select(0, other);
    tile.gathering.push_back(receive(theirs, other));
  });
  return tile;
}

void VocabularyVisit::finish_tile(Tile tile) {
  for (comm::Request& request : tile.gathering) request.wait();
  const at::Tensor targets = input_.targets.narrow(0, tile.begin, tile.tokens);
  const auto softmax = kernels::combine_statistics(tile.statistics, targets, shard_.shard().held);
  loss_sum_ += std::accumulate(softmax.losses.begin(), softmax.losses.end(), 0.0);
  if (input_.with_gradients) form_gradients(tile, targets, softmax.scale);
}

void VocabularyVisit::form_gradients(Tile& tile, const at::Tensor& targets, const at::Tensor& scale) {
  Parameter& matrix = shard_.output();
  kernels::shard_gradient(tile.logits, targets, shard_.shard(), scale, input_.loss_scale);
  at::Tensor part = kernels::product_backward_wide(tile.logits, matrix.weight);
  recount(part, Category::Transfers);
  finish_reduction();
  if (shard_.is_last()) {
    reduction_.begin = tile.begin;
    reduction_.parts.resize(static_cast<std::size_t>(pipeline_.size()));
    for_others([&](int other) {
      at::Tensor& theirs = reduction_.parts[other];
      theirs = at::empty_like(part);
      recount(theirs, Category::Transfers);
      reduction_.receives.push_back(receive(theirs, other));
    });
    reduction_.parts.back() = part;
  } else {
    send(part, last_);
  }
  kernels::accumulate_weight_gradient(matrix.gradient, tile.logits,
                                      normed_.narrow(0, tile.begin, tile.tokens));
}

// Adds the parts of the latest tile; the receives were posted before its weight gradient.
void VocabularyVisit::finish_reduction() {
  if (reduction_.parts.empty()) return;
  for (comm::Request& request : reduction_.receives) request.wait();
  at::Tensor& sum = reduction_.parts.front();
  for (std::size_t rank = 1; rank < reduction_.parts.size(); ++rank) {
    kernels::accumulate(sum, reduction_.parts[rank]);
  }
  grad_normed_.narrow(0, reduction_.begin, sum.size(0)).copy_(sum);
  reduction_ = {};
}

std::int64_t VocabularyVisit::tiles() const {
  return (input_.targets.numel() + tile_tokens_ - 1) / tile_tokens_;
}

// Frees arrived buffers first.
void VocabularyVisit::send(const at::Tensor& buffer, int to) {
  std::erase_if(sent_, [](Sent& sent) { return sent.request.test(); });
  sent_.push_back({pipeline_.send(bytes_of(buffer), to, channel_), buffer});
}

comm::Request VocabularyVisit::receive(at::Tensor& buffer, int from) {
  return pipeline_.receive(bytes_of(buffer), from, channel_);
}

template <class Visit>
void VocabularyVisit::for_others(Visit&& visit) {
  for (int other = 0; other < pipeline_.size(); ++other) {
    if (other != pipeline_.rank()) visit(other);
  }
}

}  // namespace penstock::nn
