// SPDX-License-Identifier: Apache-2.0
// Rows of [b, H, T, d] tensors: rotation, merging by log-sum-exp, sums and products of rows.
#pragma once

#include <limits>

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// A tensor [b, H, T, d] of any strides but the last, which is 1.
template <class Element>
struct Heads {
  Element* data;
  std::int64_t heads, tokens;
  std::int64_t of_sequence, of_head, of_token;  // strides

  // Row `row` of b·H·T.
  PENSTOCK_BOTH Element* row(std::int64_t row) const {
    return data + row / tokens / heads * of_sequence + row / tokens % heads * of_head +
           row % tokens * of_token;
  }
};

// Row n: token n of b·T, whose heads are turned by the angles of its position; sign -1 turns back.
template <class In, class Out, int kWidth>
struct TurnTokens {
  using Number = Accumulator<Out>;
  static constexpr int kLanes = kBlock;

  Heads<const In> in;
  Heads<Out> out;
  const Number* cosine;  // [positions, half]
  const Number* sine;
  const std::int64_t* starts;                // [b, length], of each position where it counts from; or null
  std::int64_t length;                       // of a sequence
  std::int64_t first, second, first_tokens;  // as Positions
  std::int64_t half;                         // of a head's width
  Number sign;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const std::int64_t sequence = row / in.tokens, token = row % in.tokens;
    const std::int64_t position = token + (token < first_tokens ? first : second);
    const std::int64_t angles = (position - (starts ? starts[sequence * length + position] : 0)) * half;
    const In* from = in.data + sequence * in.of_sequence + token * in.of_token;
    Out* to = out.data + sequence * out.of_sequence + token * out.of_token;
    const std::int64_t packs = half / kWidth;
    lanes.each(in.heads * packs, [&](std::int64_t i) {
      const std::int64_t head = i / packs, k = i % packs;
      const In* head_in = from + head * in.of_head;
      Out* head_out = to + head * out.of_head;
      const auto a = load<kWidth>(head_in, k), b = load<kWidth>(head_in + half, k);
      const auto c = load<kWidth>(cosine + angles, k), s = load<kWidth>(sine + angles, k);
      store(head_out, k, packed<Out, kWidth>([&](int j) { return a[j] * c[j] - b[j] * (sign * s[j]); }));
      store(head_out + half, k,
            packed<Out, kWidth>([&](int j) { return b[j] * c[j] + a[j] * (sign * s[j]); }));
    });
  }
};

// Attention over other keys of the queries first, first + 1, ... of a total joins it.
template <class Element, int kWidth>
struct MergeRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kWarp;

  Heads<Number> total;
  Number* total_lse;  // [b, H, T of the total]
  std::int64_t total_tokens;
  Heads<const Element> part;
  const Number* part_lse;  // [b, H, T]
  std::int64_t d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    Number& kept_lse = total_lse[row / part.tokens * total_tokens + row % part.tokens];
    const Number taken = part_lse[row], kept = kept_lse;
    if (taken == -std::numeric_limits<Number>::infinity()) return;
    const Number greater = kept > taken ? kept : taken, less = kept > taken ? taken : kept;
    const Number ratio = std::exp(less - greater);
    const Number of_greater = Number(1) / (Number(1) + ratio), of_less = ratio * of_greater;
    const Number keep = kept >= taken ? of_greater : of_less, take = kept >= taken ? of_less : of_greater;
    Number* sum = total.row(row);
    const Element* from = part.row(row);
    lanes.each(d / kWidth, [&](std::int64_t k) {
      const auto a = load<kWidth>(sum, k);
      const auto b = load<kWidth>(from, k);
      store(sum, k, packed<Number, kWidth>([&](int i) { return keep * a[i] + take * b[i]; }));
    });
    lanes.wait();  // all lanes have read the log-sum-exp
    lanes.once([&] { kept_lse = greater + std::log1p(ratio); });
  }
};

template <class Element, int kWidth>
struct AddHeadRows {
  static constexpr int kLanes = kWarp;

  Heads<Accumulator<Element>> sum;
  Heads<const Element> part;
  std::int64_t d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    auto* to = sum.row(row);
    const Element* from = part.row(row);
    lanes.each(d / kWidth, [&](std::int64_t k) {
      const auto a = load<kWidth>(to, k);
      const auto b = load<kWidth>(from, k);
      store(to, k, packed<Accumulator<Element>, kWidth>([&](int i) { return a[i] + b[i]; }));
    });
  }
};

template <class Element, int kWidth>
struct DotRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kWarp;

  Heads<const Element> a, b;
  Number* dots;
  std::int64_t d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const Element* first = a.row(row);
    const Element* second = b.row(row);
    const Number dot = lanes.template sum<Number>(d / kWidth, [&](std::int64_t k) {
      const auto x = load<kWidth>(first, k), y = load<kWidth>(second, k);
      Number total = 0;
      for (int i = 0; i < kWidth; ++i) total += x[i] * y[i];
      return total;
    });
    lanes.once([&] { dots[row] = dot; });
  }
};

// The multiple of a row whose product with it is a given one; scaled by the greatest element first, so that
// squares neither overflow nor vanish.
template <class Element, int kWidth>
struct RowsWithDots {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kWarp;

  const Element* x;  // [rows, d]
  const Number* dots;
  Element* output;
  std::int64_t d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const Element* from = x + row * d;
    const auto larger = [](Number a, Number b) { return a > b ? a : b; };
    const Number greatest = lanes.reduce(
        d, Number(0), [&](std::int64_t i) { return Number(std::abs(Number(from[i]))); }, larger);
    const Number unit = greatest > 0 ? Number(1) / greatest : Number(0);
    const Number squares = lanes.template sum<Number>(
        d, [&](std::int64_t i) { return Number(from[i]) * unit * (Number(from[i]) * unit); });
    const Number factor = squares > 0 ? dots[row] * unit / squares : Number(0);
    lanes.each(d / kWidth, [&](std::int64_t k) {
      const auto v = load<kWidth>(from, k);
      store(output + row * d, k, packed<Element, kWidth>([&](int i) { return factor * (v[i] * unit); }));
    });
  }
};

}  // namespace penstock::nn::kernels::cuda
