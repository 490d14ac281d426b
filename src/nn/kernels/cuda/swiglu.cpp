// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include "nn/kernels/cuda/rows/gate.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

void gate_elements(const at::Tensor& gate, const at::Tensor& up, at::Tensor& result) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({flat(gate), flat(up), flat(result)}, [&](auto width) {
      using Chunks = GateChunks<Element, width>;
      const std::int64_t packs = gate.numel() / width;
      launch(Chunks{read<Element>(gate), read<Element>(up), write<Element>(result), packs},
             parts_of(packs, Chunks::kChunk));
    });
  });
}

void gate_elements_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, bool with_output) {
  const at::Tensor lacking = with_output ? grad_output : at::Tensor();
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
}

void gate_rows(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights, at::Tensor& result) {
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({gate, up, result}, [&](auto width) {
      launch(WeightedGateRows<Element, width>{read<Element>(gate), read<Element>(up),
                                              read<Accumulator<Element>>(weights), write<Element>(result),
                                              gate.size(1)},
             gate.size(0));
    });
  });
}

void gate_rows_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, const at::Tensor& weights,
                        bool with_output, at::Tensor& grad_weights) {
  const at::Tensor lacking = with_output ? grad_output : at::Tensor();
  for_element_type(gate.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({grad_output, gate, up}, [&](auto width) {
      launch(WeightedGateBackwardRows<Element, width>{read<Element>(grad_output), read<Number>(weights),
                                                      write<Element>(gate), write<Element>(up),
                                                      write<Element>(lacking), write<Number>(grad_weights),
                                                      gate.size(1)},
             gate.size(0));
    });
  });
}

}  // namespace penstock::nn::kernels
