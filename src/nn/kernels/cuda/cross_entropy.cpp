// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cross_entropy.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cuda/rows/loss.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

LossSum loss_of_rows(const at::Tensor& logits, const at::Tensor& targets, double scale, bool with_gradient) {
  at::Tensor losses = at::empty({targets.numel()}, targets.options().dtype(at::kDouble));
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({logits}, [&](auto width) {
      // Without a gradient, the kernel only reads the logits.
      launch(
          LossRows<Element, width>{const_cast<Element*>(read<Element>(logits)), read<std::int64_t>(targets),
                                   write<double>(losses), logits.size(1), scale, with_gradient},
          targets.numel());
    });
  });
  return LossSum(losses);
}

}  // namespace penstock::nn::kernels
