// SPDX-License-Identifier: Apache-2.0
// Embedding lookup and its gradient (kernels/embedding.h).
#pragma once

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// Row n: copies the table's row of token n if the shard [begin, begin + count) of the vocabulary has it.
template <class Element, int kWidth>
struct TakeRows {
  static constexpr int kLanes = kBlock;

  const Element* table;  // [count, h]
  const std::int64_t* tokens;
  Element* output;  // [N, h]
  std::int64_t begin, count, h;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t n) const {
    const std::int64_t id = tokens[n] - begin;
    if (id < 0 || id >= count) return;
    lanes.each(h / kWidth,
               [&](std::int64_t k) { store(output + n * h, k, load<kWidth>(table + id * h, k)); });
  }
};

// Row n of the sorted tokens: if a new token begins there, adds the gradients of all its places to the
// table's row, in the order of the places.
template <class Element, int kWidth>
struct AddTokenRuns {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  Number* grad_table;          // [count, h]
  const Element* grad;         // [N, h]
  const std::int64_t* sorted;  // [N], ascending
  const std::int64_t* places;  // [N]: place of each sorted token, ascending among equal tokens
  std::int64_t tokens, begin, count, h;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t n) const {
    const std::int64_t token = sorted[n], id = token - begin;
    if (id < 0 || id >= count || (n > 0 && sorted[n - 1] == token)) return;
    lanes.each(h / kWidth, [&](std::int64_t k) {
      auto sum = load<kWidth>(grad_table + id * h, k);
      for (std::int64_t i = n; i < tokens && sorted[i] == token; ++i) {
        const auto part = load<kWidth>(grad + places[i] * h, k);
        for (int j = 0; j < kWidth; ++j) sum.values[j] += part[j];
      }
      store(grad_table + id * h, k, sum);
    });
  }
};

}  // namespace penstock::nn::kernels::cuda
