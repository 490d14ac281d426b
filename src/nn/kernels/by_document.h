// SPDX-License-Identifier: Apache-2.0
// Attention within documents for kernels without document masks: one call per document's queries in a chunk.
// They see either a causal square or all keys from the document's first one.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// Like attend() and attend_backward() with document starts; all results are in the accumulator type.
AttentionPart attend_by_document(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 const Visible& visible, AttentionKernel kernel);
AttentionGradients attend_by_document_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value,
                                               const AttentionPart& merged, const Visible& visible,
                                               AttentionKernel kernel);

}  // namespace penstock::nn::kernels
