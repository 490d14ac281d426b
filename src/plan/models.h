// SPDX-License-Identifier: Apache-2.0
// Known models by name, and what a planner must know of a model beyond its shape.
#pragma once

#include <span>
#include <string_view>

#include "model/shape.h"

namespace penstock::plan {

// Llama: RMSNorm, SwiGLU (three matrices), rotary positions, no biases, no dropout.
// Gpt: LayerNorm, GELU (two matrices), learned positions, biases, dropout.
enum class Family : std::uint8_t { Llama, Gpt };

struct Model {
  std::string_view name;
  model::Shape shape;
  Family family = Family::Llama;

  int mlp_matrices() const { return family == Family::Llama ? 3 : 2; }
};

std::span<const Model> known_models();

// Throws InputError naming the nearest.
const Model& find_model(std::string_view name);

// A GPT of the given sizes: f = 4h, multi-head attention, tied embeddings.
Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab);

// Vocabulary padded to a multiple of 128·t, as Megatron shards it.
std::int64_t padded_vocabulary(std::int64_t vocab, int tensor);

}  // namespace penstock::plan
