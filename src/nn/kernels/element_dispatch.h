// SPDX-License-Identifier: Apache-2.0
// Maps a tensor's element type to a C++ template type.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>

#include <type_traits>

#include "base/error.h"
#include "nn/kernels/element_types.h"

namespace penstock::nn::kernels {

inline c10::ScalarType accumulator_type(c10::ScalarType type) {
  return type == c10::ScalarType::Double ? type : c10::ScalarType::Float;
}

// Calls work(Element{}) with the C++ type for `type`.
template <class Work>
void for_element_type(c10::ScalarType type, Work&& work) {
  if (type == c10::ScalarType::Double) return work(double{});
  if (type == c10::ScalarType::Float) return work(float{});
  PENSTOCK_CHECK(type == c10::ScalarType::BFloat16, "kernels exist for f64, f32 and bf16");
  work(c10::BFloat16{});
}

// Calls work(Part{}, Sum{}) for sums of `part` elements, which are of the same type, of its accumulator type,
// or bf16 (of f32).
template <class Work>
void for_sum_types(c10::ScalarType part, c10::ScalarType sum, Work&& work) {
  for_element_type(part, [&](auto element) {
    using Element = decltype(element);
    if (sum == part) return work(element, element);
    PENSTOCK_CHECK(sum == accumulator_type(part) || sum == c10::ScalarType::BFloat16,
                   "sums have the parts' type, its accumulator type, or the narrow one");
    if constexpr (std::is_same_v<Element, float>) {
      work(element, c10::BFloat16{});
    } else {
      work(element, Accumulator<Element>{});
    }
  });
}

}  // namespace penstock::nn::kernels
