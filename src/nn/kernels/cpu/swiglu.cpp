// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include <ATen/ops/empty_like.h>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/exponential.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/cpu/work.h"

namespace penstock::nn::kernels {
namespace {

template <class Number>
Number sigmoid(Number x) {
  return Number(1) / (Number(1) + exponential(-x));
}

constexpr std::int64_t kBlock = 4096;  // elements

template <class Element>
struct GatePass {
  using Number = Accumulator<Element>;
  const Element* gate;
  const Element* up;

  PENSTOCK_VECTORISED void forward(std::int64_t begin, std::int64_t end, Element* y) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const Number x = Number(gate[i]);
      y[i] = narrowed<Element>(x * sigmoid(x) * Number(up[i]));
    }
  }

  PENSTOCK_VECTORISED void backward(std::int64_t begin, std::int64_t end, const Element* dy, Element* dg,
                                    Element* du) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const Number x = Number(gate[i]), s = sigmoid(x), d = Number(dy[i]);
      dg[i] = narrowed<Element>(d * Number(up[i]) * s * (Number(1) + x * (Number(1) - s)));
      du[i] = narrowed<Element>(d * x * s);
    }
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const KernelTimer timer(Kernel::Swiglu, memory_work(gate, up, gate));
  PENSTOCK_CHECK(gate.is_contiguous() && up.is_contiguous(), "kernels read contiguous rows");
  at::Tensor result = at::empty_like(gate);
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const GatePass<Element> pass{gate.const_data_ptr<Element>(), up.const_data_ptr<Element>()};
    Element* y = result.data_ptr<Element>();
    at::parallel_for(0, gate.numel(), rows_per_task(1),
                     [&](std::int64_t begin, std::int64_t end) { pass.forward(begin, end, y); });
  });
  return result;
}

SwigluGradients swiglu_backward(const at::Tensor& grad_output, const at::Tensor& gate, const at::Tensor& up,
                                at::Tensor& result) {
  const KernelTimer timer(Kernel::SwigluBackward, memory_work(grad_output, gate, up, gate, up, result));
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  const bool lacking = !result.defined();
  if (lacking) result = at::empty_like(gate);
  SwigluGradients gradients{at::empty_like(gate), at::empty_like(up)};
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const GatePass<Element> pass{gate.const_data_ptr<Element>(), up.const_data_ptr<Element>()};
    const Element* dy = grad_output.const_data_ptr<Element>();
    Element* dg = gradients.gate.data_ptr<Element>();
    Element* du = gradients.up.data_ptr<Element>();
    Element* y = lacking ? result.data_ptr<Element>() : nullptr;
    at::parallel_for(0, gate.numel(), rows_per_task(1), [&](std::int64_t begin, std::int64_t end) {
      // In blocks that stay in cache, so that gate and up are read from memory once.
      for (std::int64_t first = begin; first < end; first += kBlock) {
        const std::int64_t last = std::min(end, first + kBlock);
        if (y) pass.forward(first, last, y);
        pass.backward(first, last, dy, dg, du);
      }
    });
  });
  return gradients;
}

}  // namespace penstock::nn::kernels
