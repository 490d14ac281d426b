// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include <ATen/ops/empty_like.h>

#include "nn/kernels/element.h"
#include "nn/kernels/exponential.h"

namespace penstock::nn::kernels {
namespace {

template <class Number>
Number sigmoid(Number x) {
  return Number(1) / (Number(1) + exponential(-x));
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  PENSTOCK_CHECK(gate.is_contiguous() && up.is_contiguous(), "kernels read contiguous rows");
  at::Tensor result = at::empty_like(gate);
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    const Element* g = gate.const_data_ptr<Element>();
    const Element* u = up.const_data_ptr<Element>();
    Element* y = result.data_ptr<Element>();
    at::parallel_for(0, gate.numel(), rows_per_task(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Number x = Number(g[i]);
        y[i] = static_cast<Element>(x * sigmoid(x) * Number(u[i]));
      }
    });
  });
  return result;
}

SwigluGradients swiglu_backward(const at::Tensor& grad_output, const at::Tensor& gate, const at::Tensor& up) {
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  SwigluGradients result{at::empty_like(gate), at::empty_like(up)};
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    const Element* dy = grad_output.const_data_ptr<Element>();
    const Element* g = gate.const_data_ptr<Element>();
    const Element* u = up.const_data_ptr<Element>();
    Element* dg = result.gate.data_ptr<Element>();
    Element* du = result.up.data_ptr<Element>();
    at::parallel_for(0, gate.numel(), rows_per_task(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Number x = Number(g[i]), s = sigmoid(x), d = Number(dy[i]);
        dg[i] = static_cast<Element>(d * Number(u[i]) * s * (Number(1) + x * (Number(1) - s)));
        du[i] = static_cast<Element>(d * x * s);
      }
    });
  });
  return result;
}

}  // namespace penstock::nn::kernels
