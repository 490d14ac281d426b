// SPDX-License-Identifier: Apache-2.0
// A tape of one layer's computation on one rank, with the steps that depend on how its logical shards share
// the tokens out (docs/mesh.md, "Tensor ranks").
#pragma once

#include <functional>
#include <vector>

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/memory/tape.h"

namespace penstock::model {

class LayerTape {
 protected:
  // `rows`: N, of all ranks. The setting outlives the tape.
  LayerTape(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context,
            const KernelSetting& setting);

  bool is_split() const { return split_.is_split(); }

  Bytes wide(std::int64_t width) const { return rows_ * width * element_; }
  Bytes hidden() const { return layer_.own_rows() * shape_.hidden * element_; }  // the rank's rows
  Bytes norm_sums() const;                                                       // of one shard
  Bytes numbers(SavedTensor tensor) const { return layer_.kept(KeepSet{}.with(tensor), element_); }
  Bytes statistics(SavedTensor tensor) const {
    return layer_.statistics(KeepSet{}.with(tensor), accumulator_);
  }

  // [N, out] from [N, in], block of rows by block of rows.
  void take_product(std::int64_t in, std::int64_t out);

  // All rows of a tensor of which every rank has its own, until the end.
  Bytes gathered() const { return is_split() ? wide(shape_.hidden) : 0; }
  void gather() { tape_.take(gathered()); }
  void end_gather() { tape_.give(gathered()); }

  // Products of [N, width of a shard] with [width, h], added over the shards of all ranks: leaves the own
  // rows. A rank's parts of a block of rows travel as one sum.
  void scatter(const std::function<std::int64_t(const Shape&)>& width);

  // The same for parts [N, h] that are sums over the rank's shards already: with `fresh` each block of rows
  // is a tensor of its own, else a view.
  void scatter_totals(bool fresh);

  // The blocks of rows of several shards as one tensor, a copy.
  void join() { tape_.touch(shards_.size() > 1 ? hidden() : 0); }

  // The longest block of rows that is multiplied at a time.
  Tokens block_rows() const { return is_split() ? layer_.rows_of(0) : rows_; }

  const KernelSetting& setting_;
  const Bytes element_, accumulator_;
  const TensorSplit split_;
  const Tokens rows_;  // N
  const LayerShards layer_;
  const Shape& shape_;         // all shards of the rank
  std::vector<Shape> shards_;  // one by one
  Tape tape_;
};

}  // namespace penstock::model
