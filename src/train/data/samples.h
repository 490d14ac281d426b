// SPDX-License-Identifier: Apache-2.0
// Stretches of tokens cut into samples, and their endless drawing order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/options.h"
#include "base/units.h"
#include "model/shape.h"
#include "train/data/balance.h"
#include "train/data/mixture.h"
#include "train/data/packing.h"
#include "train/data/token_source.h"

namespace penstock::train {

// Part of a source, which outlives it.
struct Stretch {
  const TokenSource* source = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;                    // one past the last token
  std::shared_ptr<const Packing> packing;  // of its documents; null: cut regardless of them
};

// How samples are cut: s tokens each, overlapping by one (a target in one, an input in the next), or
// adjacent, without that last target. Packed ones have at most s tokens.
struct Cut {
  Tokens seq_len = 1;
  bool full_targets = true;
  bool packs = false;  // documents, each as whole as fits
  bool splits = true;  // those that are longer; else they are refused

  Tokens needed() const { return seq_len + (full_targets ? 1 : 0); }
  std::int64_t samples(const Stretch& stretch) const;
};

struct Sample {
  const TokenSource* source = nullptr;
  std::vector<Piece> pieces;  // at most s tokens together
};

// Samples are shared out for equal work within windows of so many draws, of which none spans two epochs.
struct Balance {
  BatchShares shares;
  std::int64_t window = 1;
  model::TokenWork work;
  Tokens padded_to = 0;  // of every sample; 0: they end with their documents
};

class Samples {
 public:
  // Without shares, an epoch has every sample of every stretch once. With a share per stretch, samples are
  // drawn in that proportion, and each stretch has its own epochs. Shuffled, every epoch has its own order,
  // derived from the seed; nothing is stored, so the time does not depend on the size. Every stretch has a
  // sample. With `balance`, the draws of a window are exchanged among themselves; with shares too, one
  // stretch's epochs may then overlap by a window.
  Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
          std::uint64_t seed, const std::optional<Balance>& balance = {});

  std::int64_t count() const { return before_.back(); }  // samples of all stretches

  // The samples that can be drawn before one repeats; at most `limit`.
  std::int64_t distinct(std::int64_t limit) const;

  // The samples of draws `first`, first + 1, ...
  std::vector<Sample> drawn(std::int64_t first, std::int64_t count) const;

 private:
  Sample at(std::int64_t drawn) const;
  std::vector<Sample> window(std::int64_t begin, std::int64_t end) const;
  std::int64_t count(std::size_t stretch) const { return before_[stretch + 1] - before_[stretch]; }
  std::int64_t in_order(std::int64_t drawn, std::int64_t samples, std::uint64_t key) const;
  Sample sample(std::size_t stretch, std::int64_t index) const;

  std::vector<Stretch> stretches_;
  Cut cut_;
  std::optional<Mixture> mixture_;
  std::vector<std::int64_t> before_;  // samples before each stretch, and of all
  bool shuffle_;
  std::uint64_t seed_;
  std::optional<Balance> balance_;
};

}  // namespace penstock::train
