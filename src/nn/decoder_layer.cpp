// SPDX-License-Identifier: Apache-2.0
#include "nn/decoder_layer.h"

#include <ATen/ops/add.h>

#include <utility>

#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/rms_norm.h"

namespace penstock::nn {

namespace {

void normalise(const Parameter& norm, double epsilon, const at::Tensor& input, at::Tensor& output,
               at::Tensor& scale) {
  if (output.defined()) return;
  auto normed = kernels::rms_norm(input, norm.weight, epsilon);
  output = std::move(normed.output);
  scale = std::move(normed.scale);
}

// The first residual and its norm.
void add_attention(const DecoderLayer& layer, LayerRecord& record) {
  const Parameter& norm = *layer.post_attention_norm;
  at::Tensor& sum = record[Saved::Norm2Input];
  at::Tensor& output = record[Saved::Norm2Output];
  if (sum.defined()) return normalise(norm, layer.norm_epsilon, sum, output, record[Saved::Norm2Scale]);
  const at::Tensor branch = attention_output(layer.attention, record);
  if (output.defined()) {
    sum = at::add(record[Saved::LayerInput], branch);
    return;
  }
  auto normed =
      kernels::rms_norm_of_sum(record[Saved::LayerInput], branch, norm.weight, layer.norm_epsilon, sum);
  output = std::move(normed.output);
  record[Saved::Norm2Scale] = std::move(normed.scale);
}

// Computes what the record lacks, from LayerInput to Gate and Up: everything in the forward, the dropped
// tensors in the backward. The same operations on the same values give the same bits.
void complete(const DecoderLayer& layer, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
              AttentionPartners* partners) {
  if (partners && !record[Saved::AttentionOutput].defined())
    partners->post_keys(earlier, AttentionPartners::Pass::Forward);
  normalise(*layer.input_norm, layer.norm_epsilon, record[Saved::LayerInput], record[Saved::Norm1Output],
            record[Saved::Norm1Scale]);
  attend(layer.attention, place, earlier, record, partners);
  add_attention(layer, record);
  expand(layer.feed_forward, record);
}

}  // namespace

at::Tensor layer_forward(const DecoderLayer& layer, const at::Tensor& input, const SlicePlace& place,
                         EarlierSlices earlier, LayerRecord& record, AttentionPartners* partners) {
  record[Saved::LayerInput] = input;
  complete(layer, place, earlier, record, partners);
  return at::add(record[Saved::Norm2Input], feed_forward_output(layer.feed_forward, record));
}

at::Tensor layer_backward_input(const DecoderLayer& layer, const at::Tensor& grad_output,
                                const SlicePlace& place, EarlierSlices earlier, LayerRecord record,
                                WeightRecord& pending, AttentionPartners* partners) {
  complete(layer, place, earlier, record, partners);
  if (partners) partners->post_keys(earlier, AttentionPartners::Pass::Backward);
  const at::Tensor grad_norm2 = feed_forward_backward_input(layer.feed_forward, grad_output, record, pending);
  const at::Tensor grad_middle =
      kernels::rms_norm_backward(grad_norm2, record[Saved::Norm2Input], layer.post_attention_norm->weight,
                                 record[Saved::Norm2Scale], grad_output, layer.post_attention_norm->gradient);
  const at::Tensor grad_norm1 =
      attention_backward_input(layer.attention, place, grad_middle, earlier, record, pending, partners);
  return kernels::rms_norm_backward(grad_norm1, record[Saved::LayerInput], layer.input_norm->weight,
                                    record[Saved::Norm1Scale], grad_middle, layer.input_norm->gradient);
}

void layer_backward_weight(WeightRecord pending) {
  const BlockScope scope(Block::WeightGradients);
  for (PendingProduct& product : pending) {
    kernels::accumulate_weight_gradient(product.weight->gradient, product.grad_output, product.input);
    product.grad_output.reset();
    product.input.reset();
  }
}

}  // namespace penstock::nn
