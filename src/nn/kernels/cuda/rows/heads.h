// SPDX-License-Identifier: Apache-2.0
// Row kernels on [b, H, T, d] tensors: rotation, merging by log-sum-exp, sums and dot products of rows.
#pragma once

#include <limits>

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// A tensor [b, H, T, d] of any strides with last stride 1. Row numbers have 32 bits: a GPU has no
// instruction for longer divisions.
template <class Element>
struct Heads {
  Element* data;
  std::uint32_t heads, tokens;
  std::int64_t of_sequence, of_head, of_token;  // strides

  // Row `row` of b·H·T.
  PENSTOCK_BOTH Element* row(std::int64_t row) const {
    const auto number = static_cast<std::uint32_t>(row);
    const std::uint32_t sequence_and_head = number / tokens, token = number % tokens;
    return data + sequence_and_head / heads * of_sequence + sequence_and_head % heads * of_head +
           token * of_token;
  }
};

// Row n: rotates the heads of token n of b·T by the angles of its position; sign -1 rotates back.
template <class In, class Out, int kWidth>
struct TurnTokens {
  using Number = Accumulator<Out>;
  static constexpr int kLanes = kBlock;

  Heads<const In> in;
  Heads<Out> out;
  const Number* cosine;  // [positions, half]
  const Number* sine;
  const std::int64_t* starts;                // [b, length], as in Positions; or null
  std::int64_t length;                       // sequence length
  std::int64_t first, second, first_tokens;  // Positions' first, second, half
  std::int64_t half;                         // half the head size
  Number sign;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const std::int64_t sequence = row / in.tokens, token = row % in.tokens;
    const std::int64_t position = token + (token < first_tokens ? first : second);
    const std::int64_t angles = (position - (starts ? starts[sequence * length + position] : 0)) * half;
    const In* from = in.data + sequence * in.of_sequence + token * in.of_token;
    Out* to = out.data + sequence * out.of_sequence + token * out.of_token;
    const auto packs = static_cast<std::uint32_t>(half / kWidth);
    lanes.each(in.heads * packs, [&](std::int64_t i) {
      const auto item = static_cast<std::uint32_t>(i);
      const std::int64_t head = item / packs, k = item % packs;
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

// Rows of small heads are processed several at a time, so that a warp has work for all its lanes and computes
// its address once.
inline constexpr std::int64_t kRowsAtOnce = 8;

// kRowsAtOnce rows from `first` on. Fast if all belong to one head, the usual case.
template <class Element>
class RowRun {
 public:
  PENSTOCK_BOTH RowRun(const Heads<Element>& all, std::int64_t first)
      : all_(all),
        first_(first),
        begin_(all.row(first)),
        together_(static_cast<std::uint32_t>(first) % all.tokens + kRowsAtOnce <= all.tokens) {}

  PENSTOCK_BOTH Element* row(std::int64_t i) const {
    return together_ ? begin_ + i * all_.of_token : all_.row(first_ + i);
  }

 private:
  const Heads<Element>& all_;
  std::int64_t first_;
  Element* begin_;
  bool together_;
};

// Calls work(i, pack) for every pack of the rows first + i: kRowsAtOnce rows, or fewer at the end of `rows`.
template <class Lanes, class Work>
PENSTOCK_BOTH void each_pack(const Lanes& lanes, std::int64_t first, std::int64_t rows, std::int64_t packs,
                             Work&& work) {
  const auto of_row = static_cast<std::uint32_t>(packs);
  lanes.each((kRowsAtOnce < rows - first ? kRowsAtOnce : rows - first) * packs, [&](std::int64_t i) {
    const auto item = static_cast<std::uint32_t>(i);
    work(item / of_row, item % of_row);
  });
}

// Group g, rows [kRowsAtOnce·g, ...): merges `part`, attention over other keys for a run of the total's
// queries, into the total.
template <class Element, int kWidth>
struct MergeRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kWarp;

  Heads<Number> total;
  Number* total_lse;  // [b, H, T of the total]
  std::int64_t total_tokens;
  Heads<const Element> part;
  const Number* part_lse;  // [b, H, T]
  std::int64_t rows, d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t group) const {
    const std::int64_t first = group * kRowsAtOnce;
    const RowRun sums(total, first);
    const RowRun parts(part, first);
    each_pack(lanes, first, rows, d / kWidth, [&](std::int64_t i, std::int64_t k) {
      Number* sum = sums.row(i);
      const auto a = load<kWidth>(sum, k);
      const auto b = load<kWidth>(parts.row(i), k);
      const Weights of = weights(kept_lse(first + i), part_lse[first + i]);
      store(sum, k, packed<Number, kWidth>([&](int j) { return of.kept * a[j] + of.taken * b[j]; }));
    });
    lanes.wait();  // all lanes have read the log-sum-exps
    lanes.each(kRowsAtOnce < rows - first ? kRowsAtOnce : rows - first, [&](std::int64_t i) {
      Number& kept = kept_lse(first + i);
      const Number taken = part_lse[first + i];
      kept = (kept > taken ? kept : taken) + std::log1p(ratio(kept, taken));
    });
  }

 private:
  struct Weights {
    Number kept, taken;
  };

  PENSTOCK_BOTH Number& kept_lse(std::int64_t row) const {
    const auto number = static_cast<std::uint32_t>(row);
    return total_lse[number / part.tokens * total_tokens + number % part.tokens];
  }
  // Ratio of the lesser sum to the greater; a log-sum-exp of -infinity means no keys.
  PENSTOCK_BOTH static Number ratio(Number kept, Number taken) {
    const Number greater = kept > taken ? kept : taken, less = kept > taken ? taken : kept;
    return less == -std::numeric_limits<Number>::infinity() ? Number(0) : std::exp(less - greater);
  }
  PENSTOCK_BOTH static Weights weights(Number kept, Number taken) {
    const Number of_both = ratio(kept, taken);
    const Number of_greater = Number(1) / (Number(1) + of_both), of_less = of_both * of_greater;
    return kept >= taken ? Weights{of_greater, of_less} : Weights{of_less, of_greater};
  }
};

// Group g, rows [kRowsAtOnce·g, ...): sum += part.
template <class Element, int kWidth>
struct AddHeadRows {
  static constexpr int kLanes = kWarp;

  Heads<Accumulator<Element>> sum;
  Heads<const Element> part;
  std::int64_t rows, d;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t group) const {
    const std::int64_t first = group * kRowsAtOnce;
    const RowRun sums(sum, first);
    const RowRun parts(part, first);
    each_pack(lanes, first, rows, d / kWidth, [&](std::int64_t i, std::int64_t k) {
      const auto a = load<kWidth>(sums.row(i), k);
      const auto b = load<kWidth>(parts.row(i), k);
      store(sums.row(i), k, packed<Accumulator<Element>, kWidth>([&](int j) { return a[j] + b[j]; }));
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

// with_row_dots() of kernels/row_dots.h. Scales by the greatest element first, so that squares neither
// overflow nor vanish.
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
    const Number unit = greatest >= std::numeric_limits<Number>::min() ? Number(1) / greatest : Number(0);
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
