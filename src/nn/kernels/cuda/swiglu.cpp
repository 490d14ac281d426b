// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include <ATen/ops/empty_like.h>

#include <utility>

#include "nn/kernels/cuda/rows/gate.h"
#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

void check_rows(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights) {
  PENSTOCK_CHECK(gate.is_contiguous() && up.is_contiguous() && weights.is_contiguous(),
                 "kernels read contiguous rows");
  PENSTOCK_CHECK(weights.numel() == gate.size(0), "every row has a weight");
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const KernelTimer timer(Kernel::Swiglu, memory_work(gate, up, gate));
  PENSTOCK_CHECK(gate.is_contiguous() && up.is_contiguous(), "kernels read contiguous rows");
  at::Tensor result = at::empty_like(gate);
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({flat(gate), flat(up), flat(result)}, [&](auto width) {
      using Chunks = GateChunks<Element, width>;
      const std::int64_t packs = gate.numel() / width;
      launch(Chunks{read<Element>(gate), read<Element>(up), write<Element>(result), packs},
             parts_of(packs, Chunks::kChunk));
    });
  });
  return result;
}

void swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, at::Tensor& result) {
  const KernelTimer timer(Kernel::SwigluBackward, memory_work(grad_output, gate, up, gate, up, result));
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  const at::Tensor lacking = result.defined() ? at::Tensor() : grad_output;
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({flat(grad_output), flat(gate), flat(up)}, [&](auto width) {
      using Chunks = GateBackwardChunks<Element, width>;
      const std::int64_t packs = gate.numel() / width;
      launch(Chunks{read<Element>(grad_output), write<Element>(gate), write<Element>(up),
                    write<Element>(lacking), packs},
             parts_of(packs, Chunks::kChunk));
    });
  });
  if (!result.defined()) result = std::move(grad_output);
}

at::Tensor weighted_swiglu(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights) {
  const KernelTimer timer(Kernel::Swiglu, memory_work(gate, up, gate));
  check_rows(gate, up, weights);
  at::Tensor result = at::empty_like(gate);
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({gate, up, result}, [&](auto width) {
      launch(WeightedGateRows<Element, width>{read<Element>(gate), read<Element>(up),
                                              read<Accumulator<Element>>(weights), write<Element>(result),
                                              gate.size(1)},
             gate.size(0));
    });
  });
  return result;
}

at::Tensor weighted_swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up,
                                    const at::Tensor& weights, at::Tensor& result) {
  const KernelTimer timer(Kernel::SwigluBackward, memory_work(grad_output, gate, up, gate, up, result));
  check_rows(gate, up, weights);
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  const at::Tensor lacking = result.defined() ? at::Tensor() : grad_output;
  at::Tensor of_weights = at::empty_like(weights);
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({grad_output, gate, up}, [&](auto width) {
      launch(WeightedGateBackwardRows<Element, width>{read<Element>(grad_output), read<Number>(weights),
                                                      write<Element>(gate), write<Element>(up),
                                                      write<Element>(lacking), write<Number>(of_weights),
                                                      gate.size(1)},
             gate.size(0));
    });
  });
  if (!result.defined()) result = std::move(grad_output);
  return of_weights;
}

}  // namespace penstock::nn::kernels
