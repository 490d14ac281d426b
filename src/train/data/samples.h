// SPDX-License-Identifier: Apache-2.0
// Stretches of tokens cut into samples, and their endless drawing order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/options.h"
#include "base/units.h"
#include "train/data/mixture.h"
#include "train/data/token_source.h"

namespace penstock::train {

// Part of a source, which outlives it.
struct Stretch {
  const TokenSource* source = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one past the last token
};

// How samples are cut: s tokens each, overlapping by one (a target in one, an input in the next), or
// adjacent, without that last target. They span documents.
struct Cut {
  Tokens seq_len = 1;
  bool full_targets = true;

  Tokens needed() const { return seq_len + (full_targets ? 1 : 0); }
  std::int64_t samples(const Stretch& stretch) const;
};

class Samples {
 public:
  // Without shares, an epoch has every sample of every stretch once. With a share per stretch, samples are
  // drawn in that proportion, and each stretch has its own epochs. Shuffled, every epoch has its own order,
  // derived from the seed; nothing is stored, so the time does not depend on the size. Every stretch has a
  // sample.
  Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
          std::uint64_t seed);

  std::int64_t count() const { return before_.back(); }  // samples of all stretches

  // The samples that can be drawn before one repeats; at most `limit`.
  std::int64_t distinct(std::int64_t limit) const;

  struct Place {
    const TokenSource* source = nullptr;
    std::int64_t first = 0;  // token
  };
  Place at(std::int64_t drawn) const;

 private:
  std::int64_t count(std::size_t stretch) const { return before_[stretch + 1] - before_[stretch]; }
  std::int64_t in_order(std::int64_t drawn, std::int64_t samples, std::uint64_t key) const;
  Place place(std::size_t stretch, std::int64_t sample) const;

  std::vector<Stretch> stretches_;
  Cut cut_;
  std::optional<Mixture> mixture_;
  std::vector<std::int64_t> before_;  // samples before each stretch, and of all
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace penstock::train
