// SPDX-License-Identifier: Apache-2.0
#include "model/memory/visit.h"

#include <algorithm>

#include "base/whole.h"
#include "mesh/shard.h"
#include "model/memory/tape.h"

namespace penstock::model {
namespace {

// Replays a visit on tapes in the order of nn/vocabulary_visit.cpp: all bytes, and non-temporaries by
// category.
class Visit {
 public:
  Visit(const VisitSize& size, const KernelSetting& setting)
      : size_(size),
        setting_(setting),
        element_(element_size(setting.precision)),
        accumulator_(accumulator_size(setting.precision)),
        count_(size.sequences * size.tokens),
        layer_(size.shape, size.tensor, count_),
        rows_(mesh::padded_block(size.shape.vocab, size.tensor.shards * size.stages, 0).held),
        hidden_(count_ * size.shape.hidden * element_),
        own_hidden_(layer_.own_rows() * size.shape.hidden * element_) {}

  VisitMemory told() {
    begin();
    const Tokens tiles = ceil_div(count_, size_.loss_tile);
    for (Tokens tile = 0; tile < tiles; ++tile) {
      begin_tile(tile);
      if (tile > 0) finish_tile(tile - 1, tile > 1);
    }
    finish_tile(tiles - 1, tiles > 1);
    end(tiles);
    return {all_.greatest_temporary(), all_.greatest_growth(), logits_.greatest_growth(),
            messages_.greatest_growth()};
  }

 private:
  Tokens tokens_of(Tokens tile) const { return std::min(size_.loss_tile, count_ - tile * size_.loss_tile); }
  Bytes logits_of(Tokens tile) const { return tokens_of(tile) * rows_ * element_; }  // of one part
  Bytes part_of(Tokens tile) const { return tokens_of(tile) * size_.shape.hidden * accumulator_; }
  Bytes statistics_of(Tokens tile) const {
    return size_.tensor.shards * size_.stages * 3 * tokens_of(tile) * accumulator_;
  }

  // Rows of a tile that are of the first of the stage's ranks, and this device's block of them.
  Tokens column_of(Tokens tile) const {
    return std::clamp<Tokens>(layer_.own_rows() - tile * size_.loss_tile, 0, tokens_of(tile));
  }
  Tokens block_of(Tokens tile) const {
    return mesh::even_block(column_of(tile), size_.stages, size_.last ? size_.stages - 1 : 0).count;
  }

  // Parts of the stage's other ranks; sums of other stages; sums on their way to the last stage.
  Bytes of_ranks(Tokens tile) const {
    return (size_.tensor.ranks - 1) * column_of(tile) * size_.shape.hidden * accumulator_;
  }
  Bytes of_stages(Tokens tile) const {
    return (size_.stages - 1) * block_of(tile) * size_.shape.hidden * accumulator_;
  }
  Bytes sums_of(Tokens tile) const { return size_.last ? 0 : block_of(tile) * size_.shape.hidden * element_; }

  void take_logits(Bytes bytes) {
    all_.add(bytes);
    logits_.add(bytes);
  }
  void give_logits(Bytes bytes) {
    all_.release(bytes);
    logits_.release(bytes);
  }
  void take_message(Bytes bytes) {
    all_.add(bytes);
    messages_.add(bytes);
  }
  void give_message(Bytes bytes) {
    all_.release(bytes);
    messages_.release(bytes);
  }

  void begin() {
    const Bytes ids = size_.sequences > 1 && size_.sliced ? count_ * kTokenIdBytes : 0;
    all_.take(ids);
    if (!size_.last) return take_message(hidden_);
    all_.take(own_hidden_);                                     // the last stage's output
    all_.take(own_hidden_ + layer_.own_rows() * accumulator_);  // its norm
    all_.take(own_hidden_);                                     // the gradient of the norm's output
    if (!size_.tensor.is_split()) return;
    all_.take(hidden_);  // all ranks' rows, to which the own rows are copied
    all_.give(own_hidden_);
  }

  void begin_tile(Tokens tile) {
    for (std::int64_t part = 0; part < size_.tensor.per_rank(); ++part) {
      take_logits(logits_of(tile));
      all_.touch(product_scratch(setting_, tokens_of(tile), size_.shape.hidden, rows_));
      all_.touch(3 * tokens_of(tile) * accumulator_);
    }
    all_.take(statistics_of(tile));
  }

  void finish_tile(Tokens tile, bool another_before) {
    const Bytes scale = 2 * tokens_of(tile) * accumulator_;
    const std::int64_t parts = size_.tensor.per_rank();
    all_.take(scale);
    for (std::int64_t part = 0; part < parts; ++part)
      take_wide_product(all_, setting_, tokens_of(tile), rows_, size_.shape.hidden);
    if (parts > 1) all_.touch(part_of(tile));  // the sum
    all_.give(parts * part_of(tile));
    take_message(part_of(tile));
    if (another_before) end_reduction(tile - 1);
    take_message(of_ranks(tile));
    all_.touch(weight_gradient_scratch(setting_, tokens_of(tile), size_.shape.hidden, rows_));
    take_message(of_stages(tile));
    give_message(of_ranks(tile));
    give_logits(parts * logits_of(tile));
    all_.give(statistics_of(tile) + scale);
  }

  void end_reduction(Tokens tile) {
    take_message(sums_of(tile));
    give_message(part_of(tile) + of_stages(tile));
    if (tile > 0) give_message(sums_of(tile - 1));
  }

  void end(Tokens tiles) {
    end_reduction(tiles - 1);
    if (!size_.last) return;
    all_.take(own_hidden_);
    if (size_.tensor.per_rank() > 1) all_.touch(own_hidden_);  // joined
    all_.touch(setting_.norm_blocks(layer_.rows_of(0)) * size_.shape.hidden * accumulator_);
  }

  const VisitSize& size_;
  const KernelSetting& setting_;
  Bytes element_, accumulator_;
  Tokens count_;  // of the slice, over all ranks
  LayerShards layer_;
  std::int64_t rows_;  // of one part of the vocabulary
  Bytes hidden_, own_hidden_;
  Tape all_, logits_, messages_;
};

}  // namespace

VisitMemory visit_memory(const VisitSize& size, const KernelSetting& setting) {
  return Visit(size, setting).told();
}

}  // namespace penstock::model
