// SPDX-License-Identifier: Apache-2.0
#include "nn/feed_forward.h"

#include <utility>

#include "nn/kernels/swiglu.h"

namespace penstock::nn {

void activate(LayerRecord& record) {
  record[Saved::Product] = kernels::swiglu(record[Saved::Gate], record[Saved::Up]);
}

GateGradients activate_backward(at::Tensor grad_product, LayerRecord& record) {
  kernels::swiglu_backward(grad_product, record[Saved::Gate], record[Saved::Up], record[Saved::Product]);
  return {std::move(record[Saved::Gate]), std::move(record[Saved::Up])};
}

}  // namespace penstock::nn
