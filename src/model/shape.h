// SPDX-License-Identifier: Apache-2.0
// The size of a transformer: parameters, FLOPs, bytes per tensor. No tensors here.
//
// Shape letters used throughout: b sequences per micro-batch, s tokens per sequence, T tokens per slice
// (b·s/n), h hidden, f ffn, H query heads, K key-value heads, d head size, V vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace penstock::model {

enum class Precision : std::uint8_t {
  F64,   // tests
  F32,   // the weights are their own masters
  BF16,  // bf16 weights and activations; f32 master weights, gradients, moments, norm statistics, loss
};
std::string_view name_of(Precision precision);
Precision parse_precision(std::string_view name);  // "f64", "f32", "bf16"; InputError otherwise

Bytes element_size(Precision precision);      // of weights and activations
Bytes accumulator_size(Precision precision);  // of gradients, moments, statistics: 8 for f64, else 4

// Default number of tokens whose logits exist at a time. A GPU needs larger tiles: the gradient of the
// output matrix is read and written once per tile.
constexpr Tokens usual_loss_tile(bool gpu) { return gpu ? 4096 : 512; }

// Rotary positions with Hugging Face's rope_scaling of type "llama3"; factor 1: unchanged.
struct RopeScaling {
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_positions = 8192;
};

// Of norms and of AdamW: the smallest that is a normal number in f32. Below it a division by zero could
// follow.
inline constexpr double kLeastEpsilon = 1e-37;

// A model of the Llama family: Llama, Mixtral (with experts), Qwen3 (with head norms), Qwen3-MoE (with both),
// Qwen2-MoE (with a shared expert). Checked by validate().
struct Shape {
  std::int64_t layers = 8;
  std::int64_t hidden = 256;
  std::int64_t ffn = 688;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 8;
  std::int64_t head_size = 0;  // 0: hidden / heads
  std::int64_t vocab = 259;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  double norm_epsilon = 1e-5;
  bool tied_embeddings = false;
  bool head_norms = false;             // RMSNorm per query and key head before the rotation
  std::int64_t experts = 1;            // MLPs per layer; a router selects some per token (Mixtral)
  std::int64_t experts_per_token = 1;  // k
  bool normalised_experts = true;      // the weights of a token's experts sum to 1
  std::int64_t shared_ffn = 0;         // width of the expert that every token visits; 0: no such expert
  bool shared_gate = false;            // its output is weighted by a sigmoid gate per token

  std::int64_t head_dim() const { return head_size > 0 ? head_size : hidden / heads; }
  std::int64_t query_width() const { return heads * head_dim(); }
  std::int64_t kv_width() const { return kv_heads * head_dim(); }
};

// The part of a layer that one of `ranks` tensor-parallel ranks computes: its heads and ffn columns; experts
// are whole.
Shape shape_of_rank(const Shape& shape, std::int64_t ranks);

// The part of a layer that logical shard `index` of `shards` computes: whole heads, at least one key head,
// and ffn columns; if these do not divide evenly, earlier shards have one more.
Shape shape_of_shard(const Shape& shape, std::int64_t shards, std::int64_t index);

// Throws InputError naming key, value and valid values (heads that do not divide hidden, ...).
void validate(const Shape& shape);

std::int64_t attention_parameters(const Shape& shape);      // Q, K, V and O of one layer
std::int64_t expert_parameters(const Shape& shape);         // gate, up, down of one expert or of a dense MLP
std::int64_t router_parameters(const Shape& shape);         // of one layer; 0 when dense
std::int64_t shared_expert_parameters(const Shape& shape);  // of one layer, with its gate; 0 if absent
std::int64_t norm_parameters(const Shape& shape);           // of one layer
std::int64_t layer_parameters(const Shape& shape);          // matrices and norms of one layer, all experts
std::int64_t total_parameters(const Shape& shape);          // a tied embedding counts once
std::int64_t output_parameters(const Shape& shape);         // the output matrix and the final norm

// Model FLOPs of forward and backward: per token for its products, 6·(N − N_input_embedding), and per
// attended query-key pair, 12·L·H·d. N includes norm weights, and only the experts that a token visits.
struct TokenWork {
  Flops token = 1;
  Flops pair = 0;

  Flops of(double tokens, double pairs) const { return token * tokens + pair * pairs; }
};
TokenWork token_work(const Shape& shape);

// Per token, with causal attention (s/2 pairs), the convention of SlimPipe and of Yuan et al. 2024.
Flops flops_per_token(const Shape& shape, std::int64_t seq_len);

// The layers of each stage: [first, first + count).
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// Splits the layers over S stages in order. `wanted` gives the counts per stage; if empty, stages differ by
// at most one layer and the last stages have fewer, to offset the output layer. Every stage holds at least
// one layer and the counts add up to all layers; throws InputError otherwise.
std::vector<LayerRange> split_layers(std::int64_t layers, int stages,
                                     const std::vector<std::int64_t>& wanted = {});

// Hugging Face's names of the parameters outside layers.
inline constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormName = "model.norm.weight";
inline constexpr const char* kOutputName = "lm_head.weight";

// Hugging Face's names of all parameters in model order; a tied embedding appears once. Sums over parameters
// use this order wherever the parameters are stored.
std::vector<std::string> parameter_names(const Shape& shape);
std::vector<std::string> layer_parameter_names(const Shape& shape, std::int64_t layer);

// Names within a layer with experts, without the trailing ".weight": Qwen's with head norms or a shared
// expert, else Mixtral's.
struct ExpertNames {
  std::string gate, up, down;
};
std::string router_name(const Shape& shape);
ExpertNames expert_names(const Shape& shape, std::int64_t expert);
ExpertNames shared_expert_names();
std::string shared_gate_name();

}  // namespace penstock::model
