// SPDX-License-Identifier: Apache-2.0
// What own products of attention compute with, whatever their instructions: operands, which of some keys that
// follow each other a panel of queries sees, and the panel's scores and running softmax.
//
// Products read words of 32 bits: one f32, or two neighbours of bf16.
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

// A left operand: rows of words, `row` words apart.
struct Left {
  const Word* at;
  std::int64_t row;
};

// A part of an inner dimension: rows of the left operand, and a panel [steps, 32] of the right one.
struct Segment {
  Left left;
  const Word* panel;
  std::int64_t steps;
};

// Keys, from `from` to before `until`.
struct Range {
  std::int64_t from = 0, until = 0;
  bool none() const { return from >= until; }
  std::int64_t count() const { return until - from; }
};

inline std::int64_t up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

// Of each query of a panel, the keys of the chunk that it sees: those from `first` to `last`, which is -1 for
// padding.
struct SeenKeys {
  alignas(64) std::int32_t first[kPanel], last[kPanel];
};

// Queries of a sequence, from `first` on; those from `end` on are padding.
struct PanelQueries {
  std::int64_t sequence, first, end;
};

// What these queries see of `count` keys from `first_key` of the chunk on. Ranges count from there.
struct PanelKeys {
  Range some, all;  // whole units that have a key that a query sees; keys that every query sees
  SeenKeys seen;    // set where a query does not see all of `some`

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

  // `count` of the keys, from one on: those in `all`, counted from there, in whole pairs; an empty range at
  // their end if there are none.
  Range whole_of(std::int64_t from, std::int64_t count, std::int64_t pair) const {
    const std::int64_t begin = std::clamp<std::int64_t>(all.from - from, 0, count),
                       end = std::clamp<std::int64_t>(all.until - from, 0, count);
    const Range whole{up(begin, pair), end / pair * pair};
    return whole.none() ? Range{count, count} : whole;
  }
};

// Of the keys so far. Probabilities are relative to 2^maximum, which may be less than the greatest one by
// kSlack: what is summed seldom has to be scaled anew. All of it depends on the query and its keys alone.
struct RunningSoftmax {
  static constexpr float kSlack = 8.0f;
  alignas(64) float maximum[kPanel], sum[kPanel];

  void begin() {
    std::fill_n(maximum, kPanel, -INFINITY);
    std::fill_n(sum, kPanel, 0.0f);
  }
};

// Scores of `rows` keys, whole pairs, the first of which is `first_key` of the chunk.
struct Scores {
  const float* at;  // [rows, 32]
  std::int64_t rows;
  Range whole;  // rows that all queries see, whole pairs
  std::int64_t first_key;
  const SeenKeys& seen;  // of the other rows
  float scale;

  Range before() const { return {0, whole.from}; }
  Range after() const { return {whole.until, rows}; }
};

// Of some keys and a panel of queries: probabilities and gradients of scores, transposed, from both products
// they need. Rows are keys. Results are rows of 32 elements.
struct ScoreRows {
  Scores scores;                      // the first product
  const float* grad_probabilities;    // the second: [keys, 32]
  const float *log_sum_exp, *delta;   // of the queries; log_sum_exp to base 2
  Word *probabilities, *grad_scores;  // grad_scores not scaled by 1/√d
  Word* paired;                       // grad_scores as a right operand: in f32 the same, so not written
};

}  // namespace penstock::nn::kernels
