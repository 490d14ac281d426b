// SPDX-License-Identifier: Apache-2.0
// Attention within documents by kernels that know none: a call for each document's queries in a chunk, which
// see either a causal square or all keys from their document's first.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// As attend() and attend_backward(), with document starts; all results in the accumulator type.
AttentionPart attend_by_document(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 const Visible& visible, AttentionKernel kernel);
AttentionGradients attend_by_document_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value,
                                               const AttentionPart& merged, const Visible& visible,
                                               AttentionKernel kernel);

}  // namespace penstock::nn::kernels
