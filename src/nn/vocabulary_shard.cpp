// SPDX-License-Identifier: Apache-2.0
#include "nn/vocabulary_shard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "backend/device.h"
#include "base/error.h"
#include "nn/kernels/embedding.h"
#include "nn/parameters/parameter_maker.h"

namespace penstock::nn {
namespace {

// The vocabulary rows of a device's shard.
mesh::Shard rows_of(const VocabularyOptions& options, int device, int shard) {
  const int shards = options.group->shards();
  return mesh::padded_block(options.shape.vocab, std::int64_t{options.devices} * shards,
                            std::int64_t{device} * shards + shard);
}

}  // namespace

VocabularyShard::VocabularyShard(const VocabularyOptions& options) : options_(options) {
  const ParameterMaker make(options.precision, options.seed, {.sharding = options.sharding});
  const model::Shape& shape = options.shape;
  const TensorGroup& group = *options.group;
  parameters_.reserve(per_shard() * static_cast<std::size_t>(group.own()));
  for (int i = 0; i < group.own(); ++i) {
    const int number = group.shard_of(i);
    const auto shard = [&](const char* name) {
      return make.shard(name, {shape.vocab, shape.hidden}, rows_of(options, options.device, number));
    };
    parameters_.push_back(shard(kEmbeddingName));
    if (is_last()) parameters_.push_back(make.norm(kFinalNormName, shape.hidden, number));
    parameters_.push_back(shape.tied_embeddings ? make.alias(embedding(i)) : shard(kOutputName));
  }
}

OutputShards VocabularyShard::output(comm::Communicator& ranks) {
  OutputShards layer{.own = {},
                     .ranks = &ranks,
                     .group = options_.group,
                     .norm_epsilon = options_.shape.norm_epsilon,
                     .tile_tokens = options_.loss_tile_tokens};
  for (int i = 0; i < options_.group->own(); ++i)
    layer.own.push_back({&output(i), is_last() ? &embedding(i) + 1 : nullptr});
  return layer;
}

at::Tensor VocabularyShard::places_of(int device, const at::Tensor& tokens) const {
  const TensorGroup& group = *options_.group;
  const std::int64_t begin = rows_of(options_, device, group.shard_of(0)).begin;
  const mesh::Shard last = rows_of(options_, device, group.shard_of(group.own() - 1));
  const auto holds = [&](std::int64_t id) { return id >= begin && id < last.begin + last.count; };
  PENSTOCK_CHECK(tokens.is_contiguous(), "tokens are read in a row");
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  const std::int64_t count = std::count_if(ids, ids + tokens.numel(), holds);
  at::Tensor places = at::empty({count}, tokens.options());
  std::int64_t* next = places.data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < tokens.numel(); ++n) {
    if (holds(ids[n])) *next++ = n;
  }
  return backend::to_device(places);
}

at::Tensor VocabularyShard::own_tokens(const at::Tensor& tokens) const {
  return backend::to_device(tokens).index_select(0, places_of(options_.device, tokens));
}

at::Tensor VocabularyShard::embed(const at::Tensor& tokens) const {
  const at::Tensor own = own_tokens(tokens);
  at::Tensor rows = at::empty({own.numel(), options_.shape.hidden}, embedding(0).weight.options());
  for (int i = 0; i < options_.group->own(); ++i)
    kernels::embed_held(rows, embedding(i).weight, embedding(i).shard, own);
  return rows;
}

void VocabularyShard::add_embedding_gradient(const at::Tensor& tokens, const at::Tensor& gradient) {
  const at::Tensor own = own_tokens(tokens);
  PENSTOCK_CHECK(own.numel() == gradient.size(0), "one row for each of the rank's tokens");
  for (int i = 0; i < options_.group->own(); ++i) {
    kernels::accumulate_held_embedding_gradient(embedding(i).gradient, embedding(i).shard, gradient, own);
  }
}

void VocabularyShard::add_tied_gradients() {
  for (int i = 0; i < options_.group->own(); ++i) {
    if (!output(i).tied) continue;
    at::Tensor input_side = embedding(i).own_part(embedding(i).gradient);
    at::Tensor output_side = output(i).own_part(output(i).gradient);
    input_side.add_(output_side);
    output_side.copy_(input_side);
  }
}

void VocabularyShard::weights_from_masters() {
  for (Parameter& parameter : parameters_) weight_from_master(parameter);
}

}  // namespace penstock::nn
