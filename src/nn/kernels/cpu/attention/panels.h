// SPDX-License-Identifier: Apache-2.0
// Shared by our own attention products of all instruction sets: operands, the range of keys that a panel of
// queries sees, and the panel's scores and running softmax.
//
// Products read 32-bit words: one f32 or two adjacent bf16.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels {

using Word = float __attribute__((may_alias));

inline const Word* words(const c10::BFloat16* elements) { return reinterpret_cast<const Word*>(elements); }
inline Word* words(c10::BFloat16* elements) { return reinterpret_cast<Word*>(elements); }
inline const Word* words(const float* elements) { return elements; }
inline Word* words(float* elements) { return elements; }

// A left operand: rows of words; `row` is the row stride in words.
struct Left {
  const Word* at;
  std::int64_t row;
};

// Part of an inner dimension: rows of the left operand and a panel [steps, 32] of the right one.
struct Segment {
  Left left;
  const Word* panel;
  std::int64_t steps;
};

// Keys [from, until).
struct Range {
  std::int64_t from = 0, until = 0;
  bool none() const { return from >= until; }
  std::int64_t count() const { return until - from; }
};

inline std::int64_t up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

// Keys of the chunk that each query of a panel sees: `first` to `last` inclusive. For padding, `last` is -1.
struct SeenKeys {
  alignas(64) std::int32_t first[kPanel], last[kPanel];
};

// A panel of queries of a sequence, from `first` on. Queries from `end` on are padding.
struct PanelQueries {
  std::int64_t sequence, first, end;
};

// Which of `count` keys, from the chunk's key `first_key` on, a panel sees. Ranges count from first_key.
struct PanelKeys {
  Range some, all;  // whole units with keys that any query sees; keys that every query sees
  SeenKeys seen;    // set only if a query does not see all of `some`

  PanelKeys(Mask mask, const FirstKeys& first_keys, const PanelQueries& queries, std::int64_t first_key,
            std::int64_t count, std::int64_t unit) {
    const std::int64_t last = std::min(queries.first + kPanel, queries.end) - 1;  // the panel's last query
    const auto from = [&](std::int64_t query) { return first_keys.of(queries.sequence, query); };
    const auto until = [&](std::int64_t query) {
      return mask == Mask::Causal ? query + 1 : first_key + count;
    };
    const auto inside = [&](std::int64_t key) { return std::clamp<std::int64_t>(key - first_key, 0, count); };
    some = {inside(from(queries.first)), inside(until(last))};
    some = some.none() ? Range{} : Range{some.from / unit * unit, up(some.until, unit)};
    if (last + 1 - queries.first == kPanel) all = {inside(from(last)), inside(until(queries.first))};
    if (all.none()) all = {some.until, some.until};
    if (all.from <= some.from && some.until <= all.until) return;
    for (std::int64_t i = 0; i < kPanel; ++i) {
      const std::int64_t query = queries.first + i;
      const bool real = query < queries.end;
      seen.first[i] = real ? static_cast<std::int32_t>(std::max<std::int64_t>(from(query), 0)) : 0;
      seen.last[i] = real ? static_cast<std::int32_t>(std::min(until(query), first_key + count) - 1) : -1;
    }
  }

  // The part of `all` in the keys [from, from + count), counted from `from`, in whole pairs. If there is
  // none, an empty range at `count`.
  Range whole_of(std::int64_t from, std::int64_t count, std::int64_t pair) const {
    const std::int64_t begin = std::clamp<std::int64_t>(all.from - from, 0, count),
                       end = std::clamp<std::int64_t>(all.until - from, 0, count);
    const Range whole{up(begin, pair), end / pair * pair};
    return whole.none() ? Range{count, count} : whole;
  }
};

// Running softmax of the keys so far, in base 2. Probabilities are relative to 2^maximum; the maximum may be
// below the greatest score by up to kSlack, so sums rarely need rescaling. Depends only on a query's keys.
struct RunningSoftmax {
  static constexpr float kSlack = 8.0f;
  alignas(64) float maximum[kPanel], sum[kPanel];

  void begin() {
    std::fill_n(maximum, kPanel, -INFINITY);
    std::fill_n(sum, kPanel, 0.0f);
  }
};

// Scores of `rows` keys (whole pairs), from the chunk's key `first_key` on.
struct Scores {
  const float* at;  // [rows, 32]
  std::int64_t rows;
  Range whole;  // rows that all queries see, whole pairs
  std::int64_t first_key;
  const SeenKeys& seen;  // for the other rows
  float scale;

  Range before() const { return {0, whole.from}; }
  Range after() const { return {whole.until, rows}; }
};

// Probabilities and gradients of scores for some keys (rows) and a panel of queries, and the two products
// from which they are computed. Result rows have 32 elements.
struct ScoreRows {
  Scores scores;                      // the first product
  const float* grad_probabilities;    // the second: [keys, 32]
  const float *log_sum_exp, *delta;   // per query; log_sum_exp in base 2
  Word *probabilities, *grad_scores;  // grad_scores are not scaled by 1/√d
  Word* paired;                       // grad_scores as a right operand; not written in f32, where it is equal
};

}  // namespace penstock::nn::kernels
