// SPDX-License-Identifier: Apache-2.0
// Known models by name, with the model properties beyond the shape that planning needs.
#pragma once

#include <span>
#include <string_view>

#include "sim/costs/engine.h"

namespace penstock::plan {

using sim::Family;

struct Model {
  std::string_view name;
  model::Shape shape;
  Family family = Family::Llama;

  int mlp_matrices() const { return family == Family::Llama ? 3 : 2; }
};

std::span<const Model> known_models();

// Throws InputError with the nearest name.
const Model& find_model(std::string_view name);

// Throws InputError for a model without SwiGLU MLPs; `what` names the feature that needs them.
void require_swiglu(const Model& model, std::string_view what);

// A GPT of the given sizes: f = 4h, multi-head attention, tied embeddings.
Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab);

// Vocabulary padded to a multiple of 128·t, as in Megatron.
std::int64_t padded_vocabulary(std::int64_t vocab, int tensor);

// Columns of the output layer over all tensor ranks; padded if the engine pads the vocabulary.
std::int64_t output_columns(const sim::Engine& engine, std::int64_t vocab, int tensor);

}  // namespace penstock::plan
