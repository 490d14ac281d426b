// SPDX-License-Identifier: Apache-2.0
// Element-wise sums of tensors and of rows.
#pragma once

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// Row c: sum += part for the packs [c·kChunk, ...) of `packs`.
template <class Element, int kWidth>
struct AddChunks {
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kChunk = 4 * kBlock;

  Accumulator<Element>* sum;
  const Element* part;
  std::int64_t packs;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t chunk) const {
    const std::int64_t first = chunk * kChunk;
    lanes.each(kChunk < packs - first ? kChunk : packs - first, [&](std::int64_t i) {
      const auto a = load<kWidth>(sum, first + i);
      const auto b = load<kWidth>(part, first + i);
      store(sum, first + i, packed<Accumulator<Element>, kWidth>([&](int j) { return a[j] + b[j]; }));
    });
  }
};

inline constexpr int kMostParts = 64;

// Up to kMostParts tensors added as an aligned binary tree, ((0+1)+(2+3))+..., rounded once.
template <class Element, class Result, int kWidth>
struct SumChunks {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kChunk = kBlock;

  const Element* parts[kMostParts];
  int count;
  Result* output;
  std::int64_t packs;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t chunk) const {
    const std::int64_t first = chunk * kChunk;
    lanes.each(kChunk < packs - first ? kChunk : packs - first, [&](std::int64_t i) {
      const Pack<Number, kWidth> sum = tree(first + i);
      store(output, first + i, packed<Result, kWidth>([&](int j) { return sum[j]; }));
    });
  }

 private:
  // Keeps a sum per complete run, the largest run first, like the digits of a binary counter of parts.
  PENSTOCK_BOTH Pack<Number, kWidth> tree(std::int64_t k) const {
    constexpr int kLevels = 7;  // enough for 64 parts
    Pack<Number, kWidth> waiting[kLevels];
    int sizes[kLevels], runs = 0;
    for (int part = 0; part < count; ++part) {
      const auto from = load<kWidth>(parts[part], k);
      waiting[runs] = packed<Number, kWidth>([&](int j) { return from[j]; });
      sizes[runs++] = 1;
      while (runs > 1 && sizes[runs - 2] == sizes[runs - 1]) join(waiting, sizes, runs);
    }
    while (runs > 1) join(waiting, sizes, runs);
    return waiting[0];
  }

  // Adds the last run to the one before it.
  PENSTOCK_BOTH static void join(Pack<Number, kWidth>* waiting, int* sizes, int& runs) {
    --runs;
    for (int j = 0; j < kWidth; ++j) waiting[runs - 1].values[j] += waiting[runs].values[j];
    sizes[runs - 1] += sizes[runs];
  }
};

// Row n: row n of `beside` (may be null) plus the rows places[n·slots ...] in order, rounded once.
template <class Element, int kWidth>
struct PlacedRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  const Element* rows;
  const std::int64_t* places;
  const Number* beside;
  Element* output;
  std::int64_t slots, packs;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t token) const {
    lanes.each(packs, [&](std::int64_t i) {
      Pack<Number, kWidth> sum{};
      if (beside) sum = load<kWidth>(beside, token * packs + i);
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        const auto row = load<kWidth>(rows, places[token * slots + slot] * packs + i);
        for (int j = 0; j < kWidth; ++j) sum.values[j] += row[j];
      }
      store(output, token * packs + i, packed<Element, kWidth>([&](int j) { return sum[j]; }));
    });
  }
};

}  // namespace penstock::nn::kernels::cuda
