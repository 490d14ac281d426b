// SPDX-License-Identifier: Apache-2.0
#include "model/shape.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "mesh/shard.h"

namespace penstock::model {
namespace {

struct PrecisionName {
  Precision precision;
  std::string_view name;
};
constexpr PrecisionName kPrecisions[] = {
    {Precision::F64, "f64"}, {Precision::F32, "f32"}, {Precision::BF16, "bf16"}};

void require_positive(std::int64_t value, const std::string& key) {
  require(value > 0, "model." + key + " = " + std::to_string(value) + " must be positive");
}

}  // namespace

std::string_view name_of(Precision precision) {
  for (const auto& [known, name] : kPrecisions) {
    if (known == precision) return name;
  }
  return "?";
}

Precision parse_precision(std::string_view name) {
  for (const auto& [precision, known] : kPrecisions) {
    if (known == name) return precision;
  }
  throw InputError("precision \"" + printable(name) + "\" is unknown; choose f32, bf16 or f64");
}

Bytes element_size(Precision precision) {
  return precision == Precision::F64 ? 8 : precision == Precision::F32 ? 4 : 2;
}

Bytes accumulator_size(Precision precision) { return precision == Precision::F64 ? 8 : 4; }

Shape shape_of_rank(const Shape& shape, std::int64_t ranks) {
  Shape part = shape;
  const auto share = [&](std::int64_t whole) { return ceil_div(whole, ranks); };
  part.head_size = shape.head_dim();
  part.heads = share(shape.heads);
  part.kv_heads = share(shape.kv_heads);
  if (shape.experts == 1) part.ffn = share(shape.ffn);
  return part;
}

Shape shape_of_shard(const Shape& shape, std::int64_t shards, std::int64_t index) {
  Shape part = shape_of_rank(shape, shards);
  if (shape.experts == 1) part.ffn = mesh::even_block(shape.ffn, shards, index).count;
  return part;
}

namespace {

// Bounds the model so that its bytes and FLOPs fit in 64 bits.
void require_countable(const Shape& shape) {
  constexpr double kMost = 1e15;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double head = real(shape.head_size > 0 ? shape.head_size : shape.hidden / shape.heads + 1);
  const double widths = 2 * head * (real(shape.heads) + real(shape.kv_heads)) +
                        (3 * real(shape.ffn) + 1) * real(shape.experts) + 3 * real(shape.shared_ffn);
  const double parameters = real(shape.hidden) * (real(shape.layers) * widths + 2 * real(shape.vocab));
  require(parameters <= kMost,
          "model: about " + exact_number(parameters) + " parameters; at most 1e15 can be counted");
}

}  // namespace

void validate(const Shape& shape) {
  require_positive(shape.layers, "layers");
  require_positive(shape.hidden, "hidden");
  require_positive(shape.ffn, "ffn");
  require_positive(shape.heads, "heads");
  require_positive(shape.kv_heads, "kv_heads");
  require_positive(shape.vocab, "vocab");
  require_positive(shape.experts, "experts");
  require_countable(shape);
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  if (shape.head_size == 0) {
    require(shape.hidden % shape.heads == 0, "model.heads = " + text(shape.heads) +
                                                 " does not divide model.hidden = " + text(shape.hidden) +
                                                 "; choose a divisor of it, or set head_size");
  }
  require(shape.experts_per_token >= 1 && shape.experts_per_token <= shape.experts,
          "model.experts_per_token = " + text(shape.experts_per_token) +
              " must be from 1 to model.experts = " + text(shape.experts));
  require(shape.shared_ffn == 0 || (shape.shared_ffn > 0 && shape.experts > 1),
          "a shared expert of width " + text(shape.shared_ffn) + " needs model.experts above 1");
  require(shape.shared_ffn > 0 || !shape.shared_gate,
          "moe.shared_gate = true needs moe.shared_experts above 0");
  require(shape.head_size >= 0,
          "model.head_size = " + text(shape.head_size) + " must be positive, or 0 for hidden / heads");
  require(shape.heads % shape.kv_heads == 0, "model.kv_heads = " + text(shape.kv_heads) +
                                                 " does not divide model.heads = " + text(shape.heads) +
                                                 "; choose a divisor of it");
  require(shape.head_dim() % 2 == 0,
          (shape.head_size > 0 ? "model.head_size = " : "model.hidden / model.heads = ") +
              text(shape.head_dim()) + " is odd; rotary positions need an even size");
  require(std::isfinite(shape.rope_theta) && shape.rope_theta > 0,
          "model.rope_theta = " + exact_number(shape.rope_theta) + " must be positive");
  require(shape.norm_epsilon >= kLeastEpsilon,
          "model.norm_epsilon = " + exact_number(shape.norm_epsilon) + " must be 1e-37 or more");
}

std::int64_t attention_parameters(const Shape& shape) {
  return 2 * shape.hidden * shape.query_width() + 2 * shape.hidden * shape.kv_width();
}

std::int64_t expert_parameters(const Shape& shape) { return 3 * shape.hidden * shape.ffn; }

std::int64_t router_parameters(const Shape& shape) {
  return shape.experts > 1 ? shape.hidden * shape.experts : 0;
}

std::int64_t shared_expert_parameters(const Shape& shape) {
  return 3 * shape.hidden * shape.shared_ffn + (shape.shared_gate ? shape.hidden : 0);
}

std::int64_t norm_parameters(const Shape& shape) {
  return 2 * shape.hidden + (shape.head_norms ? 2 * shape.head_dim() : 0);
}

std::int64_t layer_parameters(const Shape& shape) {
  return attention_parameters(shape) + shape.experts * expert_parameters(shape) + router_parameters(shape) +
         shared_expert_parameters(shape) + norm_parameters(shape);
}

std::int64_t output_parameters(const Shape& shape) { return shape.vocab * shape.hidden + shape.hidden; }

std::int64_t total_parameters(const Shape& shape) {
  const std::int64_t embedding = shape.tied_embeddings ? 0 : shape.vocab * shape.hidden;
  return shape.layers * layer_parameters(shape) + output_parameters(shape) + embedding;
}

TokenWork token_work(const Shape& shape) {
  const std::int64_t idle = (shape.experts - shape.experts_per_token) * expert_parameters(shape);
  const auto multiplied =
      static_cast<double>(shape.layers * (layer_parameters(shape) - idle) + output_parameters(shape));
  return {.token = 6.0 * multiplied,
          .pair = 12.0 * static_cast<double>(shape.layers) * static_cast<double>(shape.query_width())};
}

Flops flops_per_token(const Shape& shape, std::int64_t seq_len) {
  return token_work(shape).of(1, static_cast<double>(seq_len) / 2);
}

std::vector<LayerRange> split_layers(std::int64_t layers, int stages,
                                     const std::vector<std::int64_t>& wanted) {
  require(stages <= layers, std::to_string(stages) + " stages need at least as many layers; model.layers = " +
                                std::to_string(layers) + ": use fewer devices or chunks");
  require(
      wanted.empty() || wanted.size() == static_cast<std::size_t>(stages),
      "parallel.layers has " + counted(std::ssize(wanted), "number") + " for " + counted(stages, "stage"));
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const std::int64_t even = layers / stages + (stage < layers % stages ? 1 : 0);
    const std::int64_t count = wanted.empty() ? even : wanted[stage];
    require(count > 0, "parallel.layers gives stage " + std::to_string(stage) + " " + std::to_string(count) +
                           " layers; every stage needs at least one");
    ranges.push_back({first, count});
    first += count;
  }
  require(first == layers, "parallel.layers adds up to " + std::to_string(first) +
                               "; model.layers = " + std::to_string(layers));
  return ranges;
}

namespace {

// Otherwise Mixtral's names.
bool has_qwen_names(const Shape& shape) { return shape.head_norms || shape.shared_ffn > 0; }

std::string mixture_prefix(const Shape& shape) {
  return has_qwen_names(shape) ? "mlp." : "block_sparse_moe.";
}

ExpertNames projections(const std::string& prefix) {
  return {prefix + "gate_proj", prefix + "up_proj", prefix + "down_proj"};
}

// The router, then gate, up and down of each expert, then the shared expert's and its gate.
std::vector<std::string> mixture_names(const Shape& shape) {
  std::vector<std::string> names{router_name(shape)};
  const auto add = [&](const ExpertNames& own) { names.insert(names.end(), {own.gate, own.up, own.down}); };
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) add(expert_names(shape, expert));
  if (shape.shared_ffn > 0) add(shared_expert_names());
  if (shape.shared_gate) names.push_back(shared_gate_name());
  return names;
}

}  // namespace

std::string router_name(const Shape& shape) { return mixture_prefix(shape) + "gate"; }

ExpertNames expert_names(const Shape& shape, std::int64_t expert) {
  const std::string prefix = mixture_prefix(shape) + "experts." + std::to_string(expert) + ".";
  if (has_qwen_names(shape)) return projections(prefix);
  return {prefix + "w1", prefix + "w3", prefix + "w2"};
}

ExpertNames shared_expert_names() { return projections("mlp.shared_expert."); }

std::string shared_gate_name() { return "mlp.shared_expert_gate"; }

std::vector<std::string> layer_parameter_names(const Shape& shape, std::int64_t layer) {
  std::vector<std::string> parts{"input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                                 "self_attn.v_proj", "self_attn.o_proj"};
  if (shape.head_norms) parts.insert(parts.end(), {"self_attn.q_norm", "self_attn.k_norm"});
  parts.emplace_back("post_attention_layernorm");
  const std::vector<std::string> mlp =
      shape.experts > 1 ? mixture_names(shape)
                        : std::vector<std::string>{"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"};
  parts.insert(parts.end(), mlp.begin(), mlp.end());
  std::vector<std::string> names;
  for (const std::string& part : parts)
    names.push_back("model.layers." + std::to_string(layer) + "." + part + ".weight");
  return names;
}

std::vector<std::string> parameter_names(const Shape& shape) {
  std::vector<std::string> names{kEmbeddingName};
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::string& name : layer_parameter_names(shape, layer)) names.push_back(std::move(name));
  }
  names.emplace_back(kFinalNormName);
  if (!shape.tied_embeddings) names.emplace_back(kOutputName);
  return names;
}

}  // namespace penstock::model
