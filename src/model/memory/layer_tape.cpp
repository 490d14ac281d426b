// SPDX-License-Identifier: Apache-2.0
#include "model/memory/layer_tape.h"

#include <iterator>

namespace penstock::model {

LayerTape::LayerTape(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context,
                     const KernelSetting& setting)
    : setting_(setting),
      element_(element_size(setting.precision)),
      accumulator_(accumulator_size(setting.precision)),
      split_(split),
      rows_(rows),
      layer_(whole, split, rows, context),
      shape_(layer_.together()) {
  for (std::int64_t shard = 0; shard < split.per_rank(); ++shard)
    shards_.push_back(shape_of_shard(whole, split.shards, shard));
}

Bytes LayerTape::norm_sums() const {
  return setting_.norm_blocks(layer_.rows_of(0)) * shape_.hidden * accumulator_;
}

void LayerTape::take_product(std::int64_t in, std::int64_t out) {
  tape_.take(wide(out));
  tape_.touch(product_scratch(setting_, block_rows(), in, out));
}

// All messages stay until the last one has arrived.
void LayerTape::scatter(const std::function<std::int64_t(const Shape&)>& width) {
  const std::int64_t h = shape_.hidden;
  if (!is_split()) return take_product(width(shape_), h);
  const bool several = shards_.size() > 1;
  const Bytes travelling = h * (several ? accumulator_ : element_);
  const Bytes received = (split_.ranks - 1) * layer_.own_rows() * travelling;
  tape_.take(received);
  for (std::int64_t block = 0; block < split_.shards; ++block) {
    const Tokens rows = layer_.rows_of(block);
    for (const Shape& shard : shards_) {
      tape_.take(rows * h * element_);
      if (rows > 0) tape_.touch(product_scratch(setting_, rows, width(shard), h));
    }
    if (!several) continue;
    tape_.take(rows * travelling);
    tape_.give(std::ssize(shards_) * rows * h * element_);
  }
  tape_.take(hidden());
  tape_.give(received + rows_ * travelling);
}

void LayerTape::scatter_totals(bool fresh) {
  const Bytes received = (split_.ranks - 1) * hidden();
  const Bytes parts = fresh ? wide(shape_.hidden) : 0;
  tape_.take(received + parts + hidden());
  tape_.give(received + parts);
}

}  // namespace penstock::model
