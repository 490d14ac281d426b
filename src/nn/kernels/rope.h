// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021) in Hugging Face's convention: element i of the first half of a
// head rotates with element i of the second half (rotate_half).
#pragma once

#include <ATen/core/Tensor.h>

#include "model/shape.h"

namespace penstock::nn::kernels {

struct RotaryTable {
  at::Tensor cosine;  // [positions, d/2], accumulator type
  at::Tensor sine;    // [positions, d/2]
};

// Angles position · theta^(−2i/d), with frequencies scaled as in rope_scaling "llama3". Computed in f64 and
// rounded once.
RotaryTable rotary_table(const model::Shape& shape, std::int64_t positions, at::ScalarType type);

// Positions of the T tokens of each sequence: one consecutive run, or two runs of T/2.
struct Positions {
  Positions(std::int64_t first_token) : first(first_token), second(first_token) {}  // NOLINT: converts
  Positions(std::int64_t first_half, std::int64_t second_half, std::int64_t tokens)
      : first(first_half), second(second_half - tokens / 2), half(tokens / 2) {}

  // Position in the sequence.
  std::int64_t of(std::int64_t token) const { return token + (token < half ? first : second); }

  std::int64_t first = 0;
  std::int64_t second = 0;  // start of the second run, minus `half`
  std::int64_t half = 0;    // tokens of the first run; 0 if there is one run

  // [b, s] int64, contiguous: for each position of a sequence, the position that counts as 0 for it.
  // Undefined: the sequence's first.
  at::Tensor starts;
};

// Rotates x [b, T, H·d], contiguous → [b, H, T, d], contiguous.
at::Tensor rope(const at::Tensor& x, const RotaryTable& table, std::int64_t heads,
                const Positions& positions);

// The backward: grad [b, H, T, d] with last stride 1, in `type` or its accumulator type → [b·T, H·d] in
// `type`.
at::Tensor rope_backward(const at::Tensor& grad, const RotaryTable& table, const Positions& positions,
                         at::ScalarType type);

// Implemented in cpu/ and cuda/: rotates the heads of `in` by the angles of their positions (sign -1: back)
// into `out`. Both are [b, H, T, d] views with last stride 1; `in` has out's type or its accumulator type.
void turn(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
          at::Tensor& out);

}  // namespace penstock::nn::kernels
