// SPDX-License-Identifier: Apache-2.0
// Passes tensors to the kernels of rows/.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "nn/kernels/cuda/launch.h"
#include "nn/kernels/cuda/rows/heads.h"
#include "nn/kernels/cuda/rows/packs.h"
#include "nn/kernels/element_dispatch.h"

namespace penstock::nn::kernels::cuda {

// Whether the data is 16-byte aligned, and all rows (the last dimension) begin at multiples of `pack`
// elements and hold whole packs. True for an undefined tensor.
inline bool in_whole_packs(const at::Tensor& x, std::int64_t pack) {
  if (!x.defined()) return true;
  constexpr std::uintptr_t kAccess = 16;
  if (reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kAccess != 0) return false;
  if (x.dim() == 0 || x.size(-1) % pack != 0 || x.stride(-1) != 1) return false;
  return std::ranges::all_of(x.strides().slice(0, static_cast<std::size_t>(x.dim()) - 1),
                             [&](std::int64_t stride) { return stride % pack == 0; });
}

// Calls work(width) with the pack width for a kernel over rows of these tensors, as a constant: a full pack
// if all rows allow it, else 1. Element is the narrowest type among them.
template <class Element, class Work>
void with_packs(std::initializer_list<at::Tensor> tensors, Work&& work) {
  const auto whole = [](const at::Tensor& x) { return in_whole_packs(x, kFullPack<Element>); };
  if (std::ranges::all_of(tensors, whole)) return work(std::integral_constant<int, kFullPack<Element>>{});
  work(std::integral_constant<int, 1>{});
}

// Views all elements of a contiguous tensor as one row.
inline at::Tensor flat(const at::Tensor& x) { return x.defined() ? x.view({-1}) : x; }

inline std::int64_t parts_of(std::int64_t count, std::int64_t part) { return (count + part - 1) / part; }

template <class Element>
Heads<Element> heads_of(const at::Tensor& x) {
  Element* data = nullptr;
  if constexpr (std::is_const_v<Element>) {
    data = x.const_data_ptr<std::remove_const_t<Element>>();
  } else {
    data = x.mutable_data_ptr<Element>();
  }
  constexpr std::int64_t kMostRows = std::numeric_limits<std::uint32_t>::max();
  PENSTOCK_CHECK(x.size(0) * x.size(1) * x.size(2) <= kMostRows, "rows of heads are counted in 32 bits");
  return {data,
          static_cast<std::uint32_t>(x.size(1)),
          static_cast<std::uint32_t>(x.size(2)),
          x.stride(0),
          x.stride(1),
          x.stride(2)};
}

template <class Element>
const Element* read(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<Element>() : nullptr;
}
template <class Element>
Element* write(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<Element>() : nullptr;
}

}  // namespace penstock::nn::kernels::cuda
