// SPDX-License-Identifier: Apache-2.0
// Interprets the text in rows of published runs: model names, recomputation, sharding of states, notes.
#pragma once

#include <optional>
#include <string_view>

#include "plan/published/timed_cases.h"

namespace penstock::plan {

// Facts about a model that its columns do not contain.
struct ModelFacts {
  std::string_view beginning;  // prefix of its name
  std::int64_t head_size = 0;  // 0: hidden / heads
  Tokens window = 0;           // attention window of every second layer; 0: none
  std::string_view reason;     // why the model cannot be expressed; empty: it can
};
const ModelFacts* facts_of(std::string_view model);  // nullptr: the columns are complete

Family family_of(std::string_view model);

struct Recomputation {
  model::KeepSet keep;
  bool unknown = false;  // the source does not say how many layers
};
Recomputation recomputation(std::string_view words, std::string_view notes, bool shards_weights);

// The smallest share of fully recomputed layers with which a run fits the GPU.
double least_recomputed(const Workload& workload, const Layout& layout, const sim::Hardware& hardware);

// Parses "fsdp full (zero3)", "hsdp (fsdp full in node x DP)", "zero1 over 8 ranks, replicated beyond", ...
ShardedWeights sharded_weights(std::string_view words, std::int64_t replicas, std::int64_t ranks_per_node);

// Default engine for a source that no engine file names.
std::string typical_engine(std::string_view sharing);

EngineChanges changes_of(std::string_view notes, std::string_view model);

// Sets the workload's values for documents, windows and routing.
void apply_words(std::string_view notes, std::string_view model, Workload& workload);

std::string lower(std::string_view text);

// Returns whether `word` occurs, and not as the end of a longer word, as "H200" in "GH200".
bool has_word(std::string_view text, std::string_view word);

// Parses "... 4/node" as 4.
std::optional<std::int64_t> gpus_of_node(std::string_view hardware);

// Parses "... 4x100 Gb/s Omni-Path", "... 1,600 Gb/s", "... 400 Gb/s per GPU" as GB/s per GPU.
std::optional<double> network_rate(std::string_view hardware, std::int64_t ranks_per_node);

}  // namespace penstock::plan
