// SPDX-License-Identifier: Apache-2.0
#include "plan/published/throughput_words.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "plan/published/run_memory.h"

namespace penstock::plan {
namespace {

using model::KeepSet;
using model::SavedTensor;

bool says(std::string_view text, std::string_view phrase) {
  return text.find(phrase) != std::string_view::npos;
}

constexpr std::array kFacts{
    ModelFacts{.beginning = "Qwen3-", .head_size = 128},
    ModelFacts{.beginning = "GPT-OSS", .head_size = 64, .window = 128},
    ModelFacts{.beginning = "DeepSeek-V",
               .reason = "multi-head latent attention, and dense layers among those with experts"},
    ModelFacts{.beginning = "Llama4-Maverick", .reason = "experts in every second layer alone"},
};

KeepSet without(KeepSet keep, std::initializer_list<SavedTensor> tensors) {
  for (const SavedTensor tensor : tensors) keep = keep.without(tensor);
  return keep;
}

KeepSet selective(std::string_view words) {
  using T = SavedTensor;
  KeepSet keep = model::keep_of(model::Policy::None);
  if (says(words, "norm") || says(words, "minimal") || says(words, "dot_only"))
    keep = without(keep, {T::NormOneOutput, T::NormTwoOutput});
  if ((says(words, "act)") || says(words, "act,")) || says(words, "minimal") || says(words, "dot_only"))
    keep = without(keep, {T::Product});
  if (says(words, "ffn") || says(words, "mlp,") || says(words, "mlp)") || says(words, "but the mlp input"))
    keep = without(keep, {T::NormTwoOutput, T::GateUp, T::Product});
  if (says(words, "(moe,") || says(words, ",moe)") || says(words, "(moe)"))
    keep = without(keep, {T::NormTwoOutput, T::Dispatched, T::GateUp, T::Product});
  if (says(words, "save_qkv"))
    keep = without(keep, {T::NormOneOutput, T::AttentionOutput, T::NormTwoInput, T::NormTwoOutput, T::GateUp,
                          T::Product});
  if (says(words, "op-level"))  // every second product
    keep = without(keep, {T::NormOneOutput, T::NormTwoInput, T::NormTwoOutput, T::GateUp, T::Product});
  return keep;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

// End of the number that begins at `begin`; begin of the number, perhaps with commas, that ends at `end`.
std::size_t end_of_digits(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_digit(text[begin])) ++begin;
  return begin;
}
std::size_t begin_of_digits(std::string_view text, std::size_t end) {
  while (end > 0 && (is_digit(text[end - 1]) || text[end - 1] == ',')) --end;
  return end;
}

double digits(std::string_view text, std::size_t end) {
  const std::size_t begin = begin_of_digits(text, end);
  std::string number(text.substr(begin, end - begin));
  std::erase(number, ',');
  return parse_number(number).value_or(0);
}

// True if the text has the phrase and does not deny it: "no ...", "without ...", "... off", "... disabled".
bool told(std::string_view text, std::string_view phrase) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1)) {
    const std::string_view before = text.substr(0, at), after = text.substr(at + phrase.size());
    const bool denied = before.ends_with("no ") || before.ends_with("without ") ||
                        after.starts_with(" off") || after.starts_with(" disabled");
    if (!denied) return true;
  }
  return false;
}

// Tensor ranks per expert, from "ETP 4", "ETP1" or "experts TP4"; 0 if not given.
int expert_tensor_ranks(std::string_view notes) {
  for (const std::string_view phrase : {"etp", "experts tp"}) {
    const std::size_t at = notes.find(phrase);
    if (at == std::string_view::npos) continue;
    std::size_t begin = at + phrase.size();
    if (begin < notes.size() && notes[begin] == ' ') ++begin;
    if (const auto ranks = parse_integer(notes.substr(begin, end_of_digits(notes, begin) - begin)))
      return static_cast<int>(std::min<std::int64_t>(*ranks, 1024));
  }
  return 0;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]))) return true;
  }
  return false;
}

std::optional<std::int64_t> gpus_of_node(std::string_view hardware) {
  const std::size_t at = hardware.find("/node");
  if (at == std::string_view::npos) return std::nullopt;
  const auto count = static_cast<std::int64_t>(digits(hardware, at));
  return count > 0 && count <= 1024 ? std::optional(count) : std::nullopt;
}

const ModelFacts* facts_of(std::string_view model) {
  const auto found = std::ranges::find_if(
      kFacts, [&](const ModelFacts& facts) { return model.starts_with(facts.beginning); });
  return found == kFacts.end() ? nullptr : &*found;
}

Family family_of(std::string_view model) {
  const bool gpt = model.starts_with("GPT") && !model.starts_with("GPT-OSS");
  return gpt || model.starts_with("Falcon") || model.starts_with("OPT-") || model.starts_with("Pythia") ||
                 model.starts_with("MPT") || model.starts_with("Nemotron") || model.starts_with("BLOOM")
             ? Family::Gpt
             : Family::Llama;
}

Recomputation recomputation(std::string_view given, std::string_view notes, bool shards_weights) {
  const std::string words = lower(trim(given));
  if (says(words, "some blocks")) return {model::keep_of(model::Policy::Full), true};
  if (words.empty() && shards_weights) return {model::keep_of(model::Policy::Full), true};
  if (words.empty() || words == "none" || says(lower(notes), "doubt: full recompute"))
    return {model::keep_of(model::Policy::None), false};
  if (words.starts_with("full")) return {model::keep_of(model::Policy::Full), false};
  return {selective(words), false};
}

double least_recomputed(const Workload& workload, const Layout& layout, const sim::Hardware& hardware) {
  Layout plain = layout;
  plain.keep = model::keep_of(model::Policy::None);
  const RunMemory memory = run_memory(workload, plain);
  return std::clamp((memory.total() - hardware.usable_bytes()) / memory.records, 0.0, 1.0);
}

ShardedWeights sharded_weights(std::string_view given, std::int64_t replicas, std::int64_t ranks_per_node) {
  const std::string small = lower(given);
  const std::string_view words = small;
  ShardedWeights sharded;
  sharded.on = says(words, "fsdp") || says(words, "hsdp") || says(words, "zero3") || says(words, "zero-3") ||
               says(words, "zero 3");
  sharded.regathers = !says(words, "zero2");
  if (const std::size_t over = words.find("over "); over != std::string_view::npos) {
    sharded.group = static_cast<std::int64_t>(digits(words, end_of_digits(words, over + 5)));
  }
  if (says(words, "in node")) sharded.group = ranks_per_node;
  if (sharded.group >= replicas) sharded.group = 0;
  return sharded;
}

std::string typical_engine(std::string_view sharing) {
  const std::string words = lower(sharing);
  if (says(words, "deepspeed") && sharded_weights(words, 2, 1).on) return "deepspeed";
  return says(words, "fsdp") ? "fsdp2" : "megatron-2025";
}

EngineChanges changes_of(std::string_view given, std::string_view model) {
  const std::string notes = lower(given);
  const int cut = expert_tensor_ranks(notes);
  EngineChanges changes;
  changes.compiled = (told(notes, "torch.compile") && !says(notes, "eager (no compile)")) ||
                     says(notes, "with transformer engine") ||
                     (told(notes, "te bf16") && !says(notes, "without te"));
  changes.fused_norms = told(notes, "rms kernel");
  changes.cut_experts = cut > 1 || (cut == 0 && model.starts_with("Grok"));
  changes.looped_experts = says(notes, "no grouped gemm");
  changes.third_attention = told(notes, "fa3") || told(notes, "flash attention 3");
  changes.direct_dispatch = told(notes, "deepep") || told(notes, "hybridep");
  changes.hidden_dispatch = told(notes, "ep overlap") || told(notes, "tp overlap on");
  changes.captured = told(notes, "cuda graphs");
  return changes;
}

void apply_words(std::string_view notes, std::string_view model, Workload& workload) {
  // Assumed: the fraction of causal attention with documents as short as SQuAD's; the load of the busiest
  // expert rank without forced balance.
  constexpr double kShortDocuments = 0.1, kNaturalLoad = 1.15;
  if (says(notes, "SQuAD")) workload.seen = kShortDocuments;
  if (says(notes, "natural routing")) workload.expert_load = kNaturalLoad;
  const ModelFacts* facts = facts_of(model);
  if (facts != nullptr && facts->window > 0) {
    const double window =
        std::min(1.0, 2.0 * static_cast<double>(facts->window) / static_cast<double>(workload.seq_len));
    workload.seen *= 0.5 + 0.5 * window;
  }
}

std::optional<double> network_rate(std::string_view hardware, std::int64_t ranks_per_node) {
  constexpr double kBits = 8;
  const std::size_t unit = hardware.find(" Gb/s");
  if (unit == std::string_view::npos || says(hardware.substr(0, unit), "NVLink")) return std::nullopt;
  double total = digits(hardware, unit);
  std::size_t begin = begin_of_digits(hardware, unit);
  while (begin > 0 && hardware[begin - 1] == ' ') --begin;
  if (begin > 0 && hardware[begin - 1] == 'x') {
    --begin;
    while (begin > 0 && hardware[begin - 1] == ' ') --begin;
    total *= digits(hardware, begin);
  }
  if (total <= 0) return std::nullopt;
  return total / kBits /
         (hardware.substr(unit).starts_with(" Gb/s per GPU") ? 1.0 : static_cast<double>(ranks_per_node));
}

}  // namespace penstock::plan
