// SPDX-License-Identifier: Apache-2.0
#include "plan/models.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::plan {
namespace {

constexpr std::int64_t kLlama3Vocabulary = 128256;
constexpr std::int64_t kKwaiVocabulary = 32004;
constexpr std::int64_t kMegatronVocabulary = 51200;

struct Sizes {
  std::int64_t layers, hidden, ffn, heads, kv_heads, vocab;
  std::int64_t experts = 1, experts_per_token = 1;
};

Model llama(std::string_view name, const Sizes& sizes, bool tied = false) {
  Model model{name, {}, Family::Llama};
  model.shape.layers = sizes.layers;
  model.shape.hidden = sizes.hidden;
  model.shape.ffn = sizes.ffn;
  model.shape.heads = sizes.heads;
  model.shape.kv_heads = sizes.kv_heads;
  model.shape.vocab = sizes.vocab;
  model.shape.experts = sizes.experts;
  model.shape.experts_per_token = sizes.experts_per_token;
  model.shape.tied_embeddings = tied;
  return model;
}

Model named_gpt(std::string_view name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Model model = gpt(layers, hidden, heads, kMegatronVocabulary);
  model.name = name;
  return model;
}

// Shapes from the sources of bench/reference; the last three from the models' published configurations.
const std::array kModels{
    llama("llama-7b", {32, 4096, 11008, 32, 32, kKwaiVocabulary}),
    llama("llama-65b", {80, 8192, 22016, 64, 64, kKwaiVocabulary}),
    llama("llama2-70b", {80, 8192, 28672, 64, 8, kKwaiVocabulary}),
    llama("llama-175b", {96, 12288, 32768, 96, 96, kKwaiVocabulary}),
    llama("llama-13b", {40, 5120, 13824, 40, 40, kLlama3Vocabulary}, true),
    llama("llama-70b-gqa", {80, 8192, 28672, 64, 8, kLlama3Vocabulary}, true),
    llama("llama-150b-gqa", {96, 12288, 32768, 96, 8, kLlama3Vocabulary}, true),
    llama("mixtral-8x7b", {32, 4096, 14336, 32, 8, kLlama3Vocabulary, 8, 2}, true),
    llama("mixtral-8x22b", {56, 6144, 16384, 48, 8, kLlama3Vocabulary, 8, 2}, true),
    named_gpt("gpt-22b", 48, 6144, 64),
    named_gpt("gpt-175b", 96, 12288, 96),
    named_gpt("gpt-530b", 105, 20480, 128),
    named_gpt("gpt-1t", 128, 25600, 160),
    llama("llama2-7b", {32, 4096, 11008, 32, 32, 32000}),
    llama("llama3-8b", {32, 4096, 14336, 32, 8, kLlama3Vocabulary}),
    llama("llama3-70b", {80, 8192, 28672, 64, 8, kLlama3Vocabulary}),
};

}  // namespace

std::span<const Model> known_models() { return kModels; }

const Model& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model& model : kModels) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw InputError("model \"" + printable(name) + "\" is unknown" + instead_of(name, names));
}

void require_swiglu(const Model& model, std::string_view what) {
  require(model.family == Family::Llama, std::string(what) + " needs a model with SwiGLU; model.name = \"" +
                                             std::string(model.name) + "\" has GELU and can only be planned");
}

Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  Model model = llama("gpt", {layers, hidden, 4 * hidden, heads, heads, vocab}, true);
  model.family = Family::Gpt;
  return model;
}

std::int64_t padded_vocabulary(std::int64_t vocab, int tensor) {
  const std::int64_t unit = 128 * static_cast<std::int64_t>(tensor);
  return round_up(vocab, unit);
}

std::int64_t output_columns(const sim::Engine& engine, std::int64_t vocab, int tensor) {
  return engine.padded_vocabulary ? padded_vocabulary(vocab, tensor) : vocab;
}

}  // namespace penstock::plan
