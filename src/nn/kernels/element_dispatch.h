// SPDX-License-Identifier: Apache-2.0
// Maps a tensor's element type to a C++ template type.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>

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

}  // namespace penstock::nn::kernels
