// SPDX-License-Identifier: Apache-2.0
// SwiGLU, silu(gate) · up, and its gradients (kernels/swiglu.h).
#pragma once

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

template <class Number>
PENSTOCK_BOTH Number sigmoid(Number x) {
  return Number(1) / (Number(1) + std::exp(-x));
}

// Row c: packs [c·kChunk, ...) of `packs`.
template <class Element, int kWidth>
struct GateChunks {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kChunk = 2 * kBlock;  // packs

  const Element* gate;
  const Element* up;
  Element* output;
  std::int64_t packs;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t chunk) const {
    const std::int64_t first = chunk * kChunk;
    lanes.each(kChunk < packs - first ? kChunk : packs - first, [&](std::int64_t i) {
      const auto x = load<kWidth>(gate, first + i), u = load<kWidth>(up, first + i);
      store(output, first + i, packed<Element, kWidth>([&](int j) { return x[j] * sigmoid(x[j]) * u[j]; }));
    });
  }
};

// In place: gate and up become their gradients.
template <class Element, int kWidth>
struct GateBackwardChunks {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kChunk = 2 * kBlock;

  const Element* grad_output;
  Element* gate;
  Element* up;
  Element* output;  // recomputed in grad_output's memory; or null
  std::int64_t packs;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t chunk) const {
    const std::int64_t first = chunk * kChunk;
    lanes.each(kChunk < packs - first ? kChunk : packs - first, [&](std::int64_t i) {
      const auto d = load<kWidth>(grad_output, first + i), x = load<kWidth>(gate, first + i);
      const auto u = load<kWidth>(up, first + i);
      Pack<Element, kWidth> of_gate, of_up, of_output;
      for (int j = 0; j < kWidth; ++j) {
        const Number s = sigmoid(x[j]);
        of_gate.set(j, d[j] * u[j] * s * (Number(1) + x[j] * (Number(1) - s)));
        of_up.set(j, d[j] * x[j] * s);
        of_output.set(j, x[j] * s * u[j]);
      }
      store(gate, first + i, of_gate);
      store(up, first + i, of_up);
      if (output) store(output, first + i, of_output);
    });
  }
};

// weight[row] · silu(gate) · up.
template <class Element, int kWidth>
struct WeightedGateRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  const Element* gate;
  const Element* up;
  const Number* weights;
  Element* output;
  std::int64_t columns;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const std::int64_t first = row * columns;
    const Number weight = weights[row];
    lanes.each(columns / kWidth, [&](std::int64_t k) {
      const auto x = load<kWidth>(gate + first, k), u = load<kWidth>(up + first, k);
      store(output + first, k,
            packed<Element, kWidth>([&](int j) { return weight * (x[j] * sigmoid(x[j]) * u[j]); }));
    });
  }
};

// In place, like GateBackwardChunks.
template <class Element, int kWidth>
struct WeightedGateBackwardRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  const Element* grad_output;
  const Number* weights;
  Element* gate;
  Element* up;
  Element* output;  // or null
  Number* grad_weights;
  std::int64_t columns;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const std::int64_t first = row * columns;
    const Number weight = weights[row];
    const Number dot = lanes.template sum<Number>(columns / kWidth, [&](std::int64_t k) {
      const auto d = load<kWidth>(grad_output + first, k), x = load<kWidth>(gate + first, k);
      const auto u = load<kWidth>(up + first, k);
      Pack<Element, kWidth> of_gate, of_up, of_output;
      Number total = 0;
      for (int j = 0; j < kWidth; ++j) {
        const Number s = sigmoid(x[j]);
        total += d[j] * (x[j] * s * u[j]);
        of_gate.set(j, weight * d[j] * u[j] * s * (Number(1) + x[j] * (Number(1) - s)));
        of_up.set(j, weight * d[j] * x[j] * s);
        of_output.set(j, weight * (x[j] * s * u[j]));
      }
      store(gate + first, k, of_gate);
      store(up + first, k, of_up);
      if (output) store(output + first, k, of_output);
      return total;
    });
    lanes.once([&] { grad_weights[row] = dot; });
  }
};

}  // namespace penstock::nn::kernels::cuda
