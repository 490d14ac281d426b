// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "nn/kernels/cpu/fused_exponential.h"
#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn::kernels {
namespace {

template <class Element>
Accumulator<Element> sigmoid(Accumulator<Element> x) {
  using Number = Accumulator<Element>;
  return Number(1) / (Number(1) + fast_exponential<Element>(-x));
}

template <class Element>
struct GatePass {
  using Number = Accumulator<Element>;
  const Element* gate;
  const Element* up;

  static constexpr auto kOutput = [](Number x, Number u, auto...) { return x * sigmoid<Element>(x) * u; };
  static constexpr auto kOfGate = [](Number x, Number u, Number d) {
    const Number s = sigmoid<Element>(x);
    return d * u * s * (Number(1) + x * (Number(1) - s));
  };
  static constexpr auto kOfUp = [](Number x, Number, Number d) { return d * x * sigmoid<Element>(x); };

  PENSTOCK_VECTORISED void forward(std::int64_t begin, std::int64_t end, Element* y) const {
    map(end - begin, Inputs(gate + begin, up + begin), Output(y + begin, kOutput));
  }

  PENSTOCK_VECTORISED void backward(std::int64_t begin, std::int64_t end, const Element* dy, Element* dg,
                                    Element* du) const {
    map(end - begin, Inputs(gate + begin, up + begin, dy + begin), Output(dg + begin, kOfGate),
        Output(du + begin, kOfUp));
  }

  PENSTOCK_VECTORISED void backward_with_output(std::int64_t begin, std::int64_t end, const Element* dy,
                                                Element* dg, Element* du, Element* y) const {
    map(end - begin, Inputs(gate + begin, up + begin, dy + begin), Output(dg + begin, kOfGate),
        Output(du + begin, kOfUp), Output(y + begin, kOutput));
  }
};

// One row with its weight.
template <class Element>
struct WeightedRow {
  using Number = Accumulator<Element>;
  const Element* gate;
  const Element* up;
  Number weight;
  std::int64_t columns;

  PENSTOCK_VECTORISED void forward(Element* y) const {
    const auto output = [w = weight](Number x, Number u) { return w * (x * sigmoid<Element>(x) * u); };
    map(columns, Inputs(gate, up), Output(y, output));
  }

  // In place: g and u, the row's gate and up, become their gradients. If with_output, dy, the gradient of the
  // output, becomes the output. Returns the gradient of the weight. Each row has only one pointer, and the
  // returned sum has kLanes partial sums, so that the loops vectorise.
  PENSTOCK_VECTORISED static Number backward(Number weight, std::int64_t columns, bool with_output,
                                             Element* dy, Element* g, Element* u) {
    return with_output ? backward_with<true>(weight, columns, dy, g, u)
                       : backward_with<false>(weight, columns, dy, g, u);
  }

  template <bool kWithOutput>
  static Number backward_with(Number weight, std::int64_t columns, Element* dy, Element* g, Element* u) {
    constexpr std::int64_t kLanes = 16, kTerms = 256;
    std::array<Number, kTerms> terms;
    std::array<Number, kLanes> lanes{};
    for (std::int64_t begin = 0; begin < columns; begin += kTerms) {
      const std::int64_t count = std::min(kTerms, columns - begin);
      for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t i = begin + j;
        const Number x = Number(g[i]), s = sigmoid<Element>(x), d = Number(dy[i]), v = Number(u[i]);
        terms[j] = d * (x * s * v);
        g[i] = narrowed<Element>(weight * d * v * s * (Number(1) + x * (Number(1) - s)));
        u[i] = narrowed<Element>(weight * d * x * s);
        if constexpr (kWithOutput) dy[i] = narrowed<Element>(weight * (x * s * v));
      }
      for (std::int64_t j = count; j < (count + kLanes - 1) / kLanes * kLanes; ++j) terms[j] = 0;
      for (std::int64_t j = 0; j < count; j += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += terms[j + lane];
      }
    }
    return std::accumulate(lanes.begin(), lanes.end(), Number(0));
  }
};

template <class Element>
WeightedRow<Element> weighted_row(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights,
                                  std::int64_t row) {
  const std::int64_t columns = gate.size(1);
  return {gate.const_data_ptr<Element>() + row * columns, up.const_data_ptr<Element>() + row * columns,
          weights.const_data_ptr<Accumulator<Element>>()[row], columns};
}

}  // namespace

void gate_elements(const at::Tensor& gate, const at::Tensor& up, at::Tensor& result) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const GatePass<Element> pass{gate.const_data_ptr<Element>(), up.const_data_ptr<Element>()};
    Element* y = result.data_ptr<Element>();
    at::parallel_for(0, gate.numel(), rows_per_task(1),
                     [&](std::int64_t begin, std::int64_t end) { pass.forward(begin, end, y); });
  });
}

void gate_elements_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, bool with_output) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    Element* dg = gate.data_ptr<Element>();
    Element* du = up.data_ptr<Element>();
    Element* dy = grad_output.data_ptr<Element>();
    const GatePass<Element> pass{dg, du};
    at::parallel_for(0, gate.numel(), rows_per_task(1), [&](std::int64_t begin, std::int64_t end) {
      if (!with_output) return pass.backward(begin, end, dy, dg, du);
      pass.backward_with_output(begin, end, dy, dg, du, dy);
    });
  });
}

void gate_rows(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights, at::Tensor& result) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    for_rows(gate.size(0), gate.size(1), [&](std::int64_t row) {
      weighted_row<Element>(gate, up, weights, row).forward(result.data_ptr<Element>() + row * gate.size(1));
    });
  });
}

void gate_rows_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, const at::Tensor& weights,
                        bool with_output, at::Tensor& grad_weights) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const std::int64_t columns = gate.size(1);
    auto* of_weights = grad_weights.data_ptr<Accumulator<Element>>();
    for_rows(gate.size(0), columns, [&](std::int64_t row) {
      const std::int64_t first = row * columns;
      of_weights[row] =
          WeightedRow<Element>::backward(weights.const_data_ptr<Accumulator<Element>>()[row], columns,
                                         with_output, grad_output.data_ptr<Element>() + first,
                                         gate.data_ptr<Element>() + first, up.data_ptr<Element>() + first);
    });
  });
}

}  // namespace penstock::nn::kernels
