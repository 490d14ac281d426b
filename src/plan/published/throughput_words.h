// SPDX-License-Identifier: Apache-2.0
// What rows of published runs say in words: names of models, recomputation, sharing of states, notes.
#pragma once

#include <optional>
#include <string_view>

#include "plan/published/timed_cases.h"

namespace penstock::plan {

// What a model's columns do not tell.
struct ModelFacts {
  std::string_view beginning;  // of its name
  std::int64_t head_size = 0;  // 0: hidden / heads
  Tokens window = 0;           // of every second layer's attention; 0: none
  std::string_view reason;     // why the model cannot be expressed; empty: it can
};
const ModelFacts* facts_of(std::string_view model);  // nullptr: nothing but the columns

Family family_of(std::string_view model);

struct Recomputation {
  model::KeepSet keep;
  bool unknown = false;  // how many layers: the source does not say
};
Recomputation recomputation(std::string_view words, std::string_view notes, bool shares_weights);

// The smallest share of layers to recompute whole with which a run fits the card.
double least_recomputed(const Workload& workload, const Layout& layout, const sim::Hardware& hardware);

// Of "fsdp full (zero3)", "hsdp (fsdp full in node x DP)", "zero1 over 8 ranks, replicated beyond", ...
SharedWeights shared_weights(std::string_view words, std::int64_t replicas, std::int64_t ranks_per_node);

// The engine of a source that no engine's file names.
std::string typical_engine(std::string_view sharing);

EngineChanges changes_of(std::string_view notes, std::string_view model);

// Documents, windows and routing.
void apply_words(std::string_view notes, std::string_view model, Workload& workload);

std::string lower(std::string_view text);

// Is it there and not a part of a longer word, as "H200" is of "GH200"?
bool has_word(std::string_view text, std::string_view word);

// "... 4/node": 4.
std::optional<std::int64_t> gpus_of_node(std::string_view hardware);

// "... 4x100 Gb/s Omni-Path", "... 1,600 Gb/s", "... 400 Gb/s per GPU": GB/s of a GPU.
std::optional<double> network_rate(std::string_view hardware, std::int64_t ranks_per_node);

}  // namespace penstock::plan
