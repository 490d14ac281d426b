// SPDX-License-Identifier: Apache-2.0
// The oracle: the same Llama, Mixtral or Qwen3 written plainly with differentiable ATen operations in f64,
// whole sequences at once, its gradients by autograd. Shares no code with src/nn.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "model/shape.h"
#include "nn/reference_mixture.h"

namespace penstock::reference {

struct MicroBatch {
  at::Tensor tokens;          // [b, s] int64
  at::Tensor targets;         // [b, s] int64, -1: none
  at::Tensor documents = {};  // [b, s] int64: of each token where its document begins; undefined: all are one
};

struct Step {
  double loss = 0;         // loss_scale · the sum over all targets
  double router_loss = 0;  // beside it
  Weights gradients;       // of both
};

inline at::Tensor project(const at::Tensor& x, const at::Tensor& weight) { return at::matmul(x, weight.t()); }

inline at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

// Hugging Face's inv_freq for rope_type "llama3" (or the plain one), by wavelengths.
inline double inverse_frequency(const model::Shape& shape, std::int64_t i) {
  const double plain =
      1.0 / std::pow(shape.rope_theta, 2.0 * static_cast<double>(i) / static_cast<double>(shape.head_dim()));
  const model::RopeScaling& scaling = shape.rope_scaling;
  if (scaling.factor == 1.0) return plain;
  const double wavelength = 2 * std::numbers::pi / plain,
               context = static_cast<double>(scaling.original_positions);
  if (wavelength < context / scaling.high_frequency_factor) return plain;
  if (wavelength > context / scaling.low_frequency_factor) return plain / scaling.factor;
  const double smooth = (context / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - smooth) * plain / scaling.factor + smooth * plain;
}

// x [b, heads, s, d] at positions 0..s-1.
inline at::Tensor rotate(const at::Tensor& x, const model::Shape& shape) {
  const std::int64_t half = shape.head_dim() / 2;
  at::Tensor inverse = at::empty({half}, at::kDouble);
  for (std::int64_t i = 0; i < half; ++i) inverse.data_ptr<double>()[i] = inverse_frequency(shape, i);
  const at::Tensor angles = at::arange(x.size(2), at::kDouble).unsqueeze(1) * inverse;
  const at::Tensor both = at::cat({angles, angles}, -1);
  const at::Tensor rotated_half = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * both.cos() + rotated_half * both.sin();
}

// query [b, H, s, d], key and value [b, K, s, d]; documents as in MicroBatch.
inline at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& documents = {}) {
  const std::int64_t group = query.size(1) / key.size(1), tokens = query.size(2);
  const at::Tensor keys = key.repeat_interleave(group, 1), values = value.repeat_interleave(group, 1);
  at::Tensor hidden_from = at::ones({tokens, tokens}, at::kBool).triu(1);
  if (documents.defined())
    hidden_from = hidden_from.logical_or(
        at::arange(tokens, at::kLong).lt(documents.unsqueeze(1).unsqueeze(3)));  // [b, 1, s, s]
  const at::Tensor scores =
      at::matmul(query, keys.transpose(-1, -2)) / std::sqrt(static_cast<double>(query.size(3)));
  return at::matmul(at::softmax(scores.masked_fill(hidden_from, -INFINITY), -1), values);
}

inline at::Tensor attention_block(const at::Tensor& x, const model::Shape& shape, const Weights& weights,
                                  const std::string& prefix) {
  const auto projected = [&](const char* name, std::int64_t heads) {
    const at::Tensor rows = project(x, weights.at(prefix + name + "_proj.weight"));
    at::Tensor by_head = rows.view({x.size(0), x.size(1), heads, shape.head_dim()});
    if (shape.head_norms && *name != 'v')
      by_head = rms_norm(by_head, weights.at(prefix + name + "_norm.weight"), shape.norm_epsilon);
    return by_head.transpose(1, 2);
  };
  const at::Tensor output =
      attention(rotate(projected("q", shape.heads), shape), rotate(projected("k", shape.kv_heads), shape),
                projected("v", shape.kv_heads));
  return project(output.transpose(1, 2).reshape({x.size(0), x.size(1), shape.query_width()}),
                 weights.at(prefix + "o_proj.weight"));
}

inline at::Tensor feed_forward(const at::Tensor& x, const Weights& weights, const std::string& prefix) {
  const at::Tensor gated = at::silu(project(x, weights.at(prefix + "gate_proj.weight")));
  return project(gated * project(x, weights.at(prefix + "up_proj.weight")),
                 weights.at(prefix + "down_proj.weight"));
}

inline at::Tensor decoder_layer(const at::Tensor& x, const model::Shape& shape, const Weights& weights,
                                const std::string& prefix, Choice& choice) {
  const auto normed = [&](const at::Tensor& in, const char* name) {
    return rms_norm(in, weights.at(prefix + name + ".weight"), shape.norm_epsilon);
  };
  const at::Tensor middle =
      x + attention_block(normed(x, "input_layernorm"), shape, weights, prefix + "self_attn.");
  const at::Tensor input = normed(middle, "post_attention_layernorm");
  return middle + (shape.experts > 1 ? mixture(input, shape, weights, prefix, choice)
                                     : feed_forward(input, weights, prefix + "mlp."));
}

// [b, s, V]. `choices`: of every layer's experts, where not null.
inline at::Tensor logits(const model::Shape& shape, const Weights& weights, const at::Tensor& tokens,
                         std::vector<Choice>* choices = nullptr) {
  at::Tensor hidden = at::embedding(weights.at("model.embed_tokens.weight"), tokens);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    Choice choice;
    hidden = decoder_layer(hidden, shape, weights, "model.layers." + std::to_string(layer) + ".", choice);
    if (choices) choices->push_back(choice);
  }
  const at::Tensor normed = rms_norm(hidden, weights.at("model.norm.weight"), shape.norm_epsilon);
  return project(normed, weights.at(shape.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"));
}

// Sum over the targets of −log p(target); logits [..., V].
inline at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor chances = at::log_softmax(logits, -1);
  const at::Tensor chosen = at::gather(chances, -1, targets.clamp_min(0).unsqueeze(-1)).squeeze(-1);
  return -(chosen * targets.ge(0)).sum();
}

// The plain loop over micro-batches.
inline Step step(const model::Shape& shape, const Weights& weights,
                 const std::vector<MicroBatch>& micro_batches, double loss_scale,
                 const RouterLosses& losses = {}) {
  Weights leaves;
  std::vector<at::Tensor> list;
  for (const auto& [name, weight] : weights) {
    leaves[name] = weight.detach().clone().set_requires_grad(true);
    list.push_back(leaves[name]);
  }
  at::Tensor total = at::zeros({}, at::kDouble);
  std::vector<std::vector<Choice>> choices;
  for (const MicroBatch& batch : micro_batches) {
    const at::Tensor all = logits(shape, leaves, batch.tokens, &choices.emplace_back());
    total = total + loss_sum(all, batch.targets) * loss_scale;
  }
  at::Tensor beside = at::zeros({}, at::kDouble);
  if (shape.experts > 1) beside = router_loss(shape, losses, choices);
  const auto gradients = torch::autograd::grad({total + beside}, list);
  Step result{.loss = total.item<double>(), .router_loss = beside.item<double>(), .gradients = {}};
  std::size_t next = 0;
  for (const auto& [name, leaf] : leaves) result.gradients[name] = gradients[next++];
  return result;
}

}  // namespace penstock::reference
