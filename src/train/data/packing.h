// SPDX-License-Identifier: Apache-2.0
// Documents packed into samples, each as whole as fits.
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
  bool continues = false;  // the token behind the last one can be its target

  friend bool operator==(const Piece&, const Piece&) = default;
};

// Every piece is in one sample, of at most `capacity` tokens: longest first, each where the least room is
// left behind it, of equals in the sample begun last (best-fit decreasing; Ding et al. 2024). No piece is
// longer than the capacity.
class Packing {
 public:
  Packing(std::span<const Piece> pieces, Tokens capacity);

  std::int64_t samples() const { return std::ssize(begin_) - 1; }
  std::span<const Piece> sample(std::int64_t index) const;

 private:
  std::vector<Piece> pieces_;        // by sample
  std::vector<std::int64_t> begin_;  // of each sample, and their end
};

// The documents of [begin, ends.back()), by their ends, in pieces of at most `longest` tokens. The last token
// of a document has no target, nor, unless `full_targets`, that of any piece.
std::vector<Piece> pieces_of(std::int64_t begin, std::span<const std::int64_t> ends, Tokens longest,
                             bool full_targets);

}  // namespace penstock::train
