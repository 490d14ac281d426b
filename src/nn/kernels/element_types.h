// SPDX-License-Identifier: Apache-2.0
// Kernels read and write the compute type (f64, f32 or bf16) and compute in its accumulator type (f64 for
// f64, else f32).
#pragma once

namespace penstock::nn::kernels {

template <class Element>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class Element>
using Accumulator = typename AccumulatorOf<Element>::type;

}  // namespace penstock::nn::kernels
