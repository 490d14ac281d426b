// SPDX-License-Identifier: Apache-2.0
#include "nn/decoder_layer.h"

#include <ATen/ops/add.h>

#include "nn/kernels/matmul.h"
#include "nn/kernels/rms_norm.h"

namespace penstock::nn {

at::Tensor layer_forward(const DecoderLayer& layer, const at::Tensor& input, const SlicePlace& place,
                         EarlierSlices earlier, LayerRecord& record) {
  record[Saved::LayerInput] = input;
  const auto norm1 = kernels::rms_norm(input, layer.input_norm->weight, layer.norm_epsilon);
  record[Saved::Norm1Output] = norm1.output;
  record[Saved::Norm1Scale] = norm1.scale;
  const at::Tensor middle = at::add(input, attention_forward(layer.attention, place, earlier, record));
  record[Saved::Norm2Input] = middle;
  const auto norm2 = kernels::rms_norm(middle, layer.post_attention_norm->weight, layer.norm_epsilon);
  record[Saved::Norm2Output] = norm2.output;
  record[Saved::Norm2Scale] = norm2.scale;
  return at::add(middle, feed_forward(layer.feed_forward, record));
}

at::Tensor layer_backward_input(const DecoderLayer& layer, const at::Tensor& grad_output,
                                const SlicePlace& place, EarlierSlices earlier, LayerRecord record,
                                WeightRecord& pending) {
  const at::Tensor grad_norm2 = feed_forward_backward_input(layer.feed_forward, grad_output, record, pending);
  const at::Tensor grad_middle =
      kernels::rms_norm_backward(grad_norm2, record[Saved::Norm2Input], layer.post_attention_norm->weight,
                                 record[Saved::Norm2Scale], grad_output, layer.post_attention_norm->gradient);
  const at::Tensor grad_norm1 =
      attention_backward_input(layer.attention, place, grad_middle, earlier, record, pending);
  return kernels::rms_norm_backward(grad_norm1, record[Saved::LayerInput], layer.input_norm->weight,
                                    record[Saved::Norm1Scale], grad_middle, layer.input_norm->gradient);
}

void layer_backward_weight(WeightRecord pending) {
  for (PendingProduct& product : pending) {
    kernels::accumulate_weight_gradient(product.weight->gradient, product.grad_output, product.input);
    product.grad_output.reset();
    product.input.reset();
  }
}

}  // namespace penstock::nn
