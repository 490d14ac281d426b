// SPDX-License-Identifier: Apache-2.0
#include "plan/published/offload_split.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/whole.h"

namespace penstock::plan {
namespace {

using model::SavedTensor;

struct Piece {
  Bytes bytes = 0;
  bool contiguous = true;
};

// Gate and up are saved as two strided halves of fc1's output if SwiGLU runs as two operations, and whole if
// it is recomputed as one. K and V are two tensors.
void append_piece(std::vector<Piece>& pieces, SavedTensor tensor, Bytes bytes, bool fused_swiglu) {
  if (tensor == SavedTensor::KeyValue) {
    pieces.insert(pieces.end(), 2, Piece{bytes / 2});
  } else if (tensor == SavedTensor::GateUp && !fused_swiglu) {
    pieces.insert(pieces.end(), 2, Piece{bytes / 2, false});
  } else {
    pieces.push_back({bytes});
  }
}

std::vector<Piece> line_up(const model::Shape& shape, model::KeepSet keep, std::int64_t tokens, int layers,
                           bool reversed) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < model::kSavedTensors; ++i) {
    const auto tensor = static_cast<SavedTensor>(i);
    if (!keep.has(tensor)) continue;
    append_piece(pieces, tensor, 2 * model::numbers_per_token(shape, tensor) * tokens,
                 !keep.has(SavedTensor::Product));
  }
  const std::vector<Piece> layer = pieces;
  for (int i = 1; i < layers; ++i) pieces.insert(pieces.end(), layer.begin(), layer.end());
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.contiguous != b.contiguous ? a.contiguous : a.bytes > b.bytes;
  });
  if (reversed) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace

OffloadSplit split_for_offload(const model::Shape& shape, model::KeepSet keep, std::int64_t tokens,
                               int layers, double ratio) {
  OffloadSplit split;
  if (ratio <= 0) return split;
  const auto pieces = line_up(shape, keep, tokens, layers, ratio > 0.5);
  Bytes all = 0;
  for (const Piece& piece : pieces) all += piece.bytes;
  const auto wanted = static_cast<Bytes>(std::ceil(static_cast<double>(all) * ratio));
  split.leaving = std::min(all, round_up(wanted, MiB));
  Bytes before = 0;
  for (const Piece& piece : pieces) {
    if (before < split.leaving && before + piece.bytes > split.leaving) {
      split.cut_off = split.leaving - before;
      split.remainder = piece.bytes - split.cut_off;
    }
    before += piece.bytes;
  }
  return split;
}

}  // namespace penstock::plan
