// SPDX-License-Identifier: Apache-2.0
#include "nn/attention_service.h"

#include "base/error.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/profile.h"

namespace penstock::nn {

using kernels::AttentionPart;

AttentionPart attend_to(const at::Tensor& query, std::span<const AskedKeys> parts) {
  PENSTOCK_CHECK(!parts.empty(), "a request has keys");
  const BlockScope scope(Block::Attention);
  AttentionPart total = kernels::attend(query, parts.front().key, parts.front().value, parts.front().visible);
  if (parts.size() > 1) total.output = kernels::in_accumulator_type(total.output);
  for (const AskedKeys& part : parts.subspan(1))
    kernels::merge(total, kernels::attend(query, part.key, part.value, part.visible));
  total.output = total.output.to(query.scalar_type()).contiguous();
  return total;
}

ServedGradients attend_to_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const AttentionPart& merged, std::span<const AskedKeys> parts) {
  const BlockScope scope(Block::Attention);
  const at::ScalarType accumulator = kernels::accumulator_type(query.scalar_type());
  ServedGradients served;
  for (const AskedKeys& part : parts) {
    const auto gradients =
        kernels::attend_backward(grad_output, query, part.key, part.value, merged, part.visible);
    kernels::accumulate_or_take(served.query, gradients.query);
    served.parts.push_back(
        {gradients.key.to(accumulator).contiguous(), gradients.value.to(accumulator).contiguous()});
  }
  served.query = served.query.contiguous();
  return served;
}

}  // namespace penstock::nn
