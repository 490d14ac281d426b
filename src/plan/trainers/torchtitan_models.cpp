// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/torchtitan_models.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

struct TitanSizes {
  std::int64_t layers, hidden, ffn, heads, kv_heads, vocab;
};

model::Shape shape_of(const TitanSizes& sizes) {
  return {.layers = sizes.layers,
          .hidden = sizes.hidden,
          .ffn = sizes.ffn,
          .heads = sizes.heads,
          .kv_heads = sizes.kv_heads,
          .vocab = sizes.vocab};
}

TitanModel llama3(std::string_view flavor, std::string_view both, const TitanSizes& sizes) {
  return {"llama3", flavor, both, shape_of(sizes)};
}

// Heads of size 128 with norms; some models have tied embeddings.
TitanModel qwen3(std::string_view flavor, std::string_view both, const TitanSizes& sizes, bool tied = false) {
  TitanModel model{"qwen3", flavor, both, shape_of(sizes), /*has_pipeline=*/false};
  model.shape.head_size = 128;
  model.shape.head_norms = true;
  model.shape.tied_embeddings = tied;
  return model;
}

// Experts in every layer; `ffn` is the width of an expert.
TitanModel qwen3_moe(std::string_view flavor, std::string_view both, const TitanSizes& sizes,
                     std::int64_t experts) {
  TitanModel model = qwen3(flavor, both, sizes);
  model.shape.experts = experts;
  model.shape.experts_per_token = 8;
  return model;
}

// Experts in every layer, and a shared expert.
TitanModel llama4_moe(std::string_view flavor, std::string_view both, const TitanSizes& sizes,
                      std::int64_t experts) {
  TitanModel model{"llama4", flavor, both, shape_of(sizes)};
  model.shape.experts = experts;
  model.shape.experts_per_token = 1;
  model.shape.shared_ffn = sizes.ffn;
  return model;
}

constexpr std::int64_t kLlama3 = 128256, kLlama4 = 202048, kQwen3 = 151936, kDebug = 2048;  // vocabularies

const TitanModel kTitanModels[] = {
    llama3("debugmodel", "llama3 debugmodel", {6, 256, 768, 16, 16, kDebug}),
    llama3("8B", "llama3 8B", {32, 4096, 14336, 32, 8, kLlama3}),
    llama3("70B", "llama3 70B", {80, 8192, 28672, 64, 8, kLlama3}),
    llama3("405B", "llama3 405B", {126, 16384, 53248, 128, 8, kLlama3}),
    llama4_moe("17bx16e", "llama4 17bx16e", {48, 5120, 8192, 40, 8, kLlama4}, 16),
    qwen3("debugmodel", "qwen3 debugmodel", {8, 256, 3072, 16, 8, kDebug}, true),
    qwen3("0.6B", "qwen3 0.6B", {28, 1024, 3072, 16, 8, kQwen3}, true),
    qwen3("1.7B", "qwen3 1.7B", {28, 2048, 6144, 16, 8, kQwen3}, true),
    qwen3("4B", "qwen3 4B", {36, 2560, 9728, 32, 8, kQwen3}, true),
    qwen3("8B", "qwen3 8B", {36, 4096, 12288, 32, 8, kQwen3}),
    qwen3("14B", "qwen3 14B", {40, 5120, 17408, 40, 8, kQwen3}),
    qwen3("32B", "qwen3 32B", {64, 5120, 25600, 64, 8, kQwen3}),
    qwen3_moe("debugmodel_moe", "qwen3 debugmodel_moe", {8, 256, 768, 16, 8, kDebug}, 64),
    qwen3_moe("30B-A3B", "qwen3 30B-A3B", {48, 2048, 768, 32, 4, kQwen3}, 128),
    qwen3_moe("235B-A22B", "qwen3 235B-A22B", {94, 4096, 1536, 64, 4, kQwen3}, 128),
};

// Other models and flavors of torchtitan, and why they are not predicted.
struct Refused {
  std::string_view name, flavor;  // empty: all
  std::string_view has;
};
constexpr Refused kRefused[] = {
    {"llama3", "debugmodel_flex_attn", "attention within documents (flex attention)"},
    {"llama3", "debugmodel_varlen_attn", "attention within documents (variable lengths)"},
    {"llama3", "8B_flex", "attention within documents (flex attention)"},
    {"llama3", "8B_varlen", "attention within documents (variable lengths)"},
    {"llama3_ft", "", "replicas that come and go (TorchFT)"},
    {"llama4", "debugmodel_irope", "attention in blocks of a fixed length"},
    {"llama4", "17bx16e_irope", "attention in blocks of a fixed length"},
    {"llama4", "17bx128e_irope", "attention in blocks of a fixed length"},
    {"llama4", "debugmodel", "experts in every second layer alone"},
    {"llama4", "17bx128e", "experts in every second layer alone"},
    {"deepseek_v3", "", "multi-head latent attention, and dense layers before those with experts"},
    {"gpt_oss", "", "attention with sinks, and with a window in every second layer"},
    {"flux", "", "image tokens and a text encoder"}};

// How many of the properties of a kind the shapes have in common, experts counted twice.
int likeness(const model::Shape& a, const model::Shape& b) {
  return 2 * int{(a.experts > 1) == (b.experts > 1)} + int{a.head_norms == b.head_norms} +
         int{(a.shared_ffn > 0) == (b.shared_ffn > 0)} + int{a.tied_embeddings == b.tied_embeddings};
}

std::string other_than(const std::string& name) {
  std::vector<std::string_view> names;
  for (const TitanModel& model : kTitanModels) {
    if (std::ranges::find(names, model.name) == names.end()) names.push_back(model.name);
  }
  return instead_of(name, names);
}

std::string flavors_of(std::string_view name) {
  std::vector<std::string> flavors;
  for (const TitanModel& model : kTitanModels) {
    if (model.name == name) flavors.emplace_back(model.flavor);
  }
  return join(flavors, ", ");
}

}  // namespace

const TitanModel& find_titan_model(const std::string& name, const std::string& flavor,
                                   const std::string& origin) {
  for (const TitanModel& model : kTitanModels) {
    if (model.name == name && model.flavor == flavor) return model;
  }
  const std::string asked =
      origin + ": model.name = " + json_quote(name) + ", model.flavor = " + json_quote(flavor);
  for (const Refused& refused : kRefused) {
    if (refused.name == name && (refused.flavor.empty() || refused.flavor == flavor))
      throw InputError(asked + " is not predicted: it has " + std::string(refused.has));
  }
  const std::string flavors = flavors_of(name);
  if (!flavors.empty()) throw InputError(asked + " is unknown; flavors of " + name + " are " + flavors);
  throw InputError(asked + " is unknown" + other_than(name));
}

TitanKind titan_kind_of(const model::Shape& shape) {
  const auto like = [&](const TitanModel& model) { return likeness(model.shape, shape); };
  const TitanModel& nearest = *std::ranges::max_element(kTitanModels, {}, like);
  return {nearest.name, like(nearest) == likeness(shape, shape)};
}

const TitanModel* titan_model_of(const model::Shape& shape) {
  const auto* found = std::ranges::find_if(kTitanModels, [&](const TitanModel& model) {
    const model::Shape& known = model.shape;
    return known.layers == shape.layers && known.hidden == shape.hidden && known.ffn == shape.ffn &&
           known.heads == shape.heads && known.kv_heads == shape.kv_heads && known.vocab == shape.vocab &&
           known.head_dim() == shape.head_dim() && known.head_norms == shape.head_norms &&
           known.tied_embeddings == shape.tied_embeddings && known.experts == shape.experts &&
           known.experts_per_token == shape.experts_per_token && known.shared_ffn == shape.shared_ffn;
  });
  return found == std::end(kTitanModels) ? nullptr : found;
}

}  // namespace penstock::plan
