// SPDX-License-Identifier: Apache-2.0
// Stretches of tokens cut into samples, and the endless sequence in which they are drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/options.h"
#include "base/units.h"
#include "train/mixture.h"
#include "train/token_source.h"

namespace penstock::train {

// Part of a source, which outlives it.
struct Stretch {
  const TokenSource* source = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one behind the last token
};

// How samples are cut: s tokens each, overlapping by the one that is a target in one and an input in the
// next; or, without that last target, side by side. They go across documents.
struct Cut {
  Tokens seq_len = 1;
  bool full_targets = true;

  Tokens needed() const { return seq_len + (full_targets ? 1 : 0); }
  std::int64_t samples(const Stretch& stretch) const;
};

class Samples {
 public:
  // Without shares, an epoch has every sample of every stretch once. With a share for each stretch, samples
  // come from them in that proportion, and each has epochs of its own. Shuffled, every epoch has an order of
  // its own, which the seed decides; nothing is stored, so this takes the same time for any size. Every
  // stretch has a sample.
  Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
          std::uint64_t seed);

  std::int64_t count() const { return before_.back(); }  // of all stretches, each once

  // The samples that can be drawn before one comes a second time; at most `limit`.
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
