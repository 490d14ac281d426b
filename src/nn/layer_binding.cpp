// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_binding.h"

#include <algorithm>
#include <string>

#include "nn/stage_parameters.h"

namespace penstock::nn {
namespace {

// The parameters of one layer.
class LayerParameters {
 public:
  LayerParameters(std::span<Parameter> parameters, std::int64_t layer)
      : parameters_(parameters), prefix_("model.layers." + std::to_string(layer) + ".") {}

  Parameter* named(const std::string& part) const {
    return &parameter_named(parameters_, prefix_ + part + ".weight");
  }

 private:
  std::span<Parameter> parameters_;
  std::string prefix_;
};

Mixture bind_mixture(const LayerParameters& layer, const model::Shape& shape, const ExpertOptions& options) {
  const auto weights = shape.normalised_experts ? RouteWeights::OfChosen : RouteWeights::OfAll;
  Mixture mixture{.router = layer.named(model::router_name(shape)),
                  .chosen = shape.experts_per_token,
                  .weights = weights,
                  .forced = options.forced};
  if (options.group) mixture.group = options.group;
  const auto bind = [&](const model::ExpertNames& names) {
    return Expert{layer.named(names.gate), layer.named(names.up), layer.named(names.down)};
  };
  for (std::int64_t i = 0; i < options.own.count; ++i)
    mixture.experts.push_back(bind(model::expert_names(shape, options.own.begin + i)));
  if (shape.shared_ffn > 0) mixture.shared.expert = bind(model::shared_expert_names());
  if (shape.shared_gate) mixture.shared.score = layer.named(model::shared_gate_name());
  return mixture;
}

AttentionBlock bind_attention(const LayerParameters& layer, const model::Shape& shape, int shards) {
  const auto norm = [&](const char* name) { return shape.head_norms ? layer.named(name) : nullptr; };
  return {.heads = shape.heads / shards,
          .kv_heads = std::max<std::int64_t>(shape.kv_heads / shards, 1),
          .query = layer.named("self_attn.q_proj"),
          .key = layer.named("self_attn.k_proj"),
          .value = layer.named("self_attn.v_proj"),
          .output = layer.named("self_attn.o_proj"),
          .query_norm = norm("self_attn.q_norm"),
          .key_norm = norm("self_attn.k_norm"),
          .norm_epsilon = shape.norm_epsilon};
}

}  // namespace

LayerShard bind_layer(std::span<Parameter> parameters, const StageOptions& options, int shards,
                      std::int64_t number) {
  const LayerParameters layer(parameters, number);
  LayerShard shard{.attention = bind_attention(layer, options.shape, shards),
                   .input_norm = layer.named("input_layernorm"),
                   .post_attention_norm = layer.named("post_attention_layernorm")};
  if (options.shape.experts > 1) {
    shard.mixture = bind_mixture(layer, options.shape, options.experts);
  } else {
    shard.feed_forward = {layer.named("mlp.gate_proj"), layer.named("mlp.up_proj"),
                          layer.named("mlp.down_proj")};
  }
  return shard;
}

}  // namespace penstock::nn
