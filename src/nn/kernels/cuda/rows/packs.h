// SPDX-License-Identifier: Apache-2.0
// Reads and writes elements 16 bytes at a time, which a GPU does fastest, or one by one where rows do not
// allow that.
#pragma once

#include <c10/util/BFloat16.h>

#include "nn/kernels/cuda/rows/lanes.h"
#include "nn/kernels/element_types.h"

namespace penstock::nn::kernels::cuda {

template <class Element>
inline constexpr int kFullPack = 16 / sizeof(Element);

// Aligned to its size, at most to 16 bytes, the widest access of a GPU.
template <class Element, int kWidth>
struct alignas(kWidth * sizeof(Element) < 16 ? kWidth * sizeof(Element) : 16) Pack {
  Element values[kWidth];

  PENSTOCK_BOTH Accumulator<Element> operator[](int i) const { return Accumulator<Element>(values[i]); }
  PENSTOCK_BOTH void set(int i, Accumulator<Element> value) { values[i] = static_cast<Element>(value); }
};

// Returns pack k of a row. The row must begin at a multiple of the pack's size.
template <int kWidth, class Element>
PENSTOCK_BOTH Pack<Element, kWidth> load(const Element* row, std::int64_t k) {
  return reinterpret_cast<const Pack<Element, kWidth>*>(row)[k];
}

// Prefetches pack k into a GPU's L2 cache.
template <int kWidth, class Element>
PENSTOCK_BOTH void prefetch([[maybe_unused]] const Element* row, [[maybe_unused]] std::int64_t k) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(row + k * kWidth));
#endif
}

template <class Element, int kWidth>
PENSTOCK_BOTH void store(Element* row, std::int64_t k, const Pack<Element, kWidth>& pack) {
  reinterpret_cast<Pack<Element, kWidth>*>(row)[k] = pack;
}

// Returns the pack of formula(0), formula(1), ...
template <class Element, int kWidth, class Formula>
PENSTOCK_BOTH Pack<Element, kWidth> packed(Formula&& formula) {
  Pack<Element, kWidth> pack;
  for (int i = 0; i < kWidth; ++i) pack.set(i, formula(i));
  return pack;
}

}  // namespace penstock::nn::kernels::cuda
