// SPDX-License-Identifier: Apache-2.0
// A tape of one layer's computation on one rank, with the steps that depend on how its logical shards split
// the tokens (docs/mesh.md, "Tensor ranks").
#pragma once

#include <functional>
#include <vector>

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/memory/tape.h"

namespace penstock::model {

class LayerTape {
 protected:
  // `rows`: N, over all ranks. The setting must outlive the tape.
  LayerTape(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context,
            const KernelSetting& setting);

  bool is_split() const { return split_.is_split(); }

  Bytes wide(std::int64_t width) const { return rows_ * width * element_; }
  Bytes hidden() const { return layer_.own_rows() * shape_.hidden * element_; }  // the rank's rows
  Bytes norm_sums() const;                                                       // for one shard
  Bytes numbers(SavedTensor tensor) const { return layer_.kept(KeepSet{}.with(tensor), element_); }
  Bytes statistics(SavedTensor tensor) const {
    return layer_.statistics(KeepSet{}.with(tensor), accumulator_);
  }

  // The product [N, in] → [N, out], one block of rows at a time.
  void take_product(std::int64_t in, std::int64_t out);

  // gather() to end_gather(): all rows of a tensor of which each rank has its own rows.
  Bytes gathered() const { return is_split() ? wide(shape_.hidden) : 0; }
  void gather() { tape_.take(gathered()); }
  void end_gather() { tape_.give(gathered()); }

  // Products of [N, width of a shard] with [width, h], summed over the shards of all ranks: leaves the own
  // rows. A rank sends the sum of its shards' parts of a block of rows.
  void scatter(const std::function<std::int64_t(const Shape&)>& width);

  // The same for parts [N, h] already summed over the rank's shards: with `fresh` each block of rows is a
  // tensor of its own, else a view.
  void scatter_totals(bool fresh);

  // Copies the row blocks of several shards into one tensor.
  void join() { tape_.touch(shards_.size() > 1 ? hidden() : 0); }

  // Rows of the longest block multiplied at a time.
  Tokens block_rows() const { return is_split() ? layer_.rows_of(0) : rows_; }

  const KernelSetting& setting_;
  const Bytes element_, accumulator_;
  const TensorSplit split_;
  const Tokens rows_;  // N
  const LayerShards layer_;
  const Shape& shape_;         // all the rank's shards together
  std::vector<Shape> shards_;  // one per shard
  Tape tape_;
};

}  // namespace penstock::model
