// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/attention.h"

#include "nn/kernels/attention_work.h"
#include "nn/kernels/by_document.h"
#include "nn/kernels/cuda/flash.h"
#include "nn/kernels/cuda/plain_attention.h"

namespace penstock::nn::kernels {

AttentionKernel fastest_attention(at::ScalarType /*type*/) { return AttentionKernel::Aten; }

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible, AttentionKernel kernel) {
  if (visible.starts.defined()) return attend_by_document(query, key, value, visible, kernel);
  const KernelTimer timer(Kernel::Attention, attention_work(query, key, visible, 2));
  const bool fused = query.scalar_type() == at::kBFloat16;
  return fused ? cuda::flash(query, key, value, visible.mask)
               : cuda::plain_attention(query, key, value, visible.mask);
}

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible,
                                   AttentionKernel kernel) {
  if (visible.starts.defined())
    return attend_by_document_backward(grad_output, query, key, value, merged, visible, kernel);
  const KernelTimer timer(Kernel::AttentionBackward, attention_work(query, key, visible, 4));
  const bool fused = query.scalar_type() == at::kBFloat16;
  return fused ? cuda::flash_backward(grad_output, query, key, value, merged, visible.mask)
               : cuda::plain_attention_backward(grad_output, query, key, value, merged, visible.mask);
}

}  // namespace penstock::nn::kernels
