// SPDX-License-Identifier: Apache-2.0
#include "nn/vocabulary_shard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "base/error.h"
#include "nn/kernels/embedding.h"
#include "nn/parameter_maker.h"

namespace penstock::nn {

VocabularyShard::VocabularyShard(const VocabularyOptions& options)
    : options_(options), shard_(mesh::padded_block(options.shape.vocab, options.parts, options.rank)) {
  const ParameterMaker make(options.precision, options.seed, {.sharing = options.sharing});
  const model::Shape& shape = options.shape;
  const auto shard = [&](const char* name) { return make.shard(name, {shape.vocab, shape.hidden}, shard_); };
  parameters_.reserve(3);
  parameters_.push_back(shard(kEmbeddingName));
  if (is_last()) parameters_.push_back(make.norm(kFinalNormName, shape.hidden));
  parameters_.push_back(shape.tied_embeddings ? make.alias(parameters_.front()) : shard(kOutputName));
}

at::Tensor VocabularyShard::places_of(int rank, const at::Tensor& tokens) const {
  const mesh::Shard shard = mesh::padded_block(options_.shape.vocab, options_.parts, rank);
  PENSTOCK_CHECK(tokens.is_contiguous(), "tokens are read in a row");
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  const std::int64_t count =
      std::count_if(ids, ids + tokens.numel(), [&](auto id) { return shard.holds(id); });
  at::Tensor places = at::empty({count}, tokens.options());
  std::int64_t* next = places.data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < tokens.numel(); ++n) {
    if (shard.holds(ids[n])) *next++ = n;
  }
  return places;
}

at::Tensor VocabularyShard::embed(const at::Tensor& tokens) const {
  const at::Tensor own = tokens.index_select(0, places_of(options_.rank, tokens)).sub(shard_.begin);
  return kernels::embed(embedding().weight, own);
}

void VocabularyShard::add_embedding_gradient(const at::Tensor& tokens, const at::Tensor& gradient) {
  const at::Tensor own = tokens.index_select(0, places_of(options_.rank, tokens)).sub(shard_.begin);
  PENSTOCK_CHECK(own.numel() == gradient.size(0), "one row for each of the device's tokens");
  kernels::accumulate_embedding_gradient(parameters_.front().gradient, gradient, own);
}

void VocabularyShard::add_tied_gradients() {
  if (!output().tied) return;
  at::Tensor input_side = embedding().own_part(embedding().gradient);
  at::Tensor output_side = output().own_part(output().gradient);
  input_side.add_(output_side);
  output_side.copy_(input_side);
}

void VocabularyShard::weights_from_masters() {
  for (Parameter& parameter : parameters_) weight_from_master(parameter);
}

}  // namespace penstock::nn
