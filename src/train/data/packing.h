// SPDX-License-Identifier: Apache-2.0
// Packs documents into samples; only documents longer than a sample are split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace penstock::train {

// Consecutive tokens of a source.
struct Piece {
  std::int64_t first = 0;
  Tokens length = 0;
  bool continues = false;  // the token after the last one can be its target

  friend bool operator==(const Piece&, const Piece&) = default;
};

// Each piece is in one sample of at most `capacity` tokens: longest first, each where it leaves the least
// room, on ties in the sample that got this room last (best-fit decreasing; Ding et al. 2024). No piece may
// be longer than the capacity.
class Packing {
 public:
  Packing(std::span<const Piece> pieces, Tokens capacity);

  std::int64_t samples() const { return std::ssize(begin_) - 1; }
  std::span<const Piece> sample(std::int64_t index) const;

 private:
  std::vector<Piece> pieces_;        // by sample
  std::vector<std::int64_t> begin_;  // [sample], and the end of all
};

// Cuts the documents of [begin, ends.back()), given by their ends, into pieces of at most `longest` tokens.
// The last token of a document has no target; unless `full_targets`, nor has the last one of any piece.
std::vector<Piece> pieces_of(std::int64_t begin, std::span<const std::int64_t> ends, Tokens longest,
                             bool full_targets);

}  // namespace penstock::train
