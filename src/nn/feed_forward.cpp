// SPDX-License-Identifier: Apache-2.0
#include "nn/feed_forward.h"

#include "nn/kernels/swiglu.h"

namespace penstock::nn {

void activate(LayerRecord& record) {
  record[Saved::Product] = kernels::swiglu(record[Saved::Gate], record[Saved::Up]);
}

GateGradients activate_backward(const at::Tensor& grad_product, LayerRecord& record) {
  const auto [gate, up] =
      kernels::swiglu_backward(grad_product, record[Saved::Gate], record[Saved::Up], record[Saved::Product]);
  return {gate, up};
}

}  // namespace penstock::nn
