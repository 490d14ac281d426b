// SPDX-License-Identifier: Apache-2.0
#include "model/memory/visit.h"

#include <algorithm>

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
        rows_(mesh::padded_block(size.shape.vocab, size.devices, 0).held),
        hidden_(count_ * size.shape.hidden * element_) {}

  VisitMemory told() {
    begin();
    const Tokens tiles = (count_ + size_.loss_tile - 1) / size_.loss_tile;
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
  Bytes logits_of(Tokens tile) const { return tokens_of(tile) * rows_ * element_; }
  Bytes part_of(Tokens tile) const { return tokens_of(tile) * size_.shape.hidden * accumulator_; }
  Bytes statistics_of(Tokens tile) const { return size_.devices * 3 * tokens_of(tile) * accumulator_; }

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
    all_.take(hidden_);                          // the last stage's output
    all_.take(hidden_ + count_ * accumulator_);  // its norm
    all_.take(hidden_);                          // the gradient of that
  }

  void begin_tile(Tokens tile) {
    take_logits(logits_of(tile));
    all_.touch(product_scratch(setting_, tokens_of(tile), size_.shape.hidden, rows_));
    all_.touch(3 * tokens_of(tile) * accumulator_);
    all_.take(statistics_of(tile));
  }

  void finish_tile(Tokens tile, bool another_before) {
    const Bytes part = part_of(tile), scale = 2 * tokens_of(tile) * accumulator_;
    all_.take(scale);
    take_wide_product(all_, setting_, tokens_of(tile), rows_, size_.shape.hidden);
    all_.give(part);
    take_message(part);
    if (another_before) give_message(parts_here() * part_of(tile - 1));
    take_message((parts_here() - 1) * part);
    all_.touch(weight_gradient_scratch(setting_, tokens_of(tile), size_.shape.hidden, rows_));
    give_logits(logits_of(tile));
    all_.give(statistics_of(tile) + scale);
  }

  // The last device holds all devices' parts of a tile until they are added; others hold their own until it
  // is sent, while the next one is computed.
  std::int64_t parts_here() const { return size_.last ? size_.devices : 1; }

  void end(Tokens tiles) {
    give_message(parts_here() * part_of(tiles - 1));
    if (!size_.last) return;
    all_.take(hidden_);
    all_.touch((count_ + kNormBlockRows - 1) / kNormBlockRows * size_.shape.hidden * accumulator_);
  }

  const VisitSize& size_;
  const KernelSetting& setting_;
  Bytes element_, accumulator_;
  Tokens count_;
  std::int64_t rows_;
  Bytes hidden_;
  Tape all_, logits_, messages_;
};

}  // namespace

VisitMemory visit_memory(const VisitSize& size, const KernelSetting& setting) {
  return Visit(size, setting).told();
}

}  // namespace penstock::model
