// SPDX-License-Identifier: Apache-2.0
// Cuts stretches of tokens into samples and draws them in an endless order.
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

// Part of a source, which must outlive it.
struct Stretch {
  const TokenSource* source = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;                    // one past the last token
  std::shared_ptr<const Packing> packing;  // of its documents; null: documents are ignored
};

// How samples are cut: s tokens each, overlapping by one (a target in one, an input in the next), or
// adjacent, without that last target. Packed samples have at most s tokens.
struct Cut {
  Tokens seq_len = 1;
  bool full_targets = true;
  bool packs = false;  // documents, split only if longer than a sample
  bool splits = true;  // longer documents; else they are refused

  Tokens needed() const { return seq_len + (full_targets ? 1 : 0); }
  std::int64_t samples(const Stretch& stretch) const;
};

struct Sample {
  const TokenSource* source = nullptr;
  std::vector<Piece> pieces;  // at most s tokens together
};

// Samples are distributed for equal work within windows of `window` draws; no window spans two epochs.
struct Balance {
  BatchShares shares;
  std::int64_t window = 1;
  model::TokenWork work;
  Tokens padded_to = 0;  // of every sample; 0: samples end with their documents
};

class Samples {
 public:
  // Without shares, an epoch has every sample of every stretch once. With a share per stretch, samples are
  // drawn in that proportion, and each stretch has its own epochs. With `shuffle`, every epoch has its own
  // order, derived from the seed; nothing is stored, so the time does not depend on the size. Every stretch
  // must have a sample. With `balance`, draws are permuted within their window; with shares too, one
  // stretch's epochs may then overlap by a window.
  Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
          std::uint64_t seed, const std::optional<Balance>& balance = {});

  std::int64_t count() const { return before_.back(); }  // samples of all stretches

  // Number of samples drawn before one repeats; at most `limit`.
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
