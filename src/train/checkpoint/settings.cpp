// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "files/checksum.h"
#include "schedule/text.h"

namespace penstock::train {
namespace {

constexpr const char* kSlices = "schedule.slices";
constexpr const char* kThreads = "train.threads";
constexpr const char* kAttentionCost = "schedule.attention_cost";
constexpr const char* kSliceTokens = "schedule.slice_tokens";
constexpr const char* kReplicas = "numerics.replicas";
constexpr const char* kTensor = "numerics.tensor";
constexpr std::int64_t kMostThreads = 4096;

// These change no trained bit.
constexpr std::array<std::string_view, 10> kUpkeep{
    "device",           "timeout", "evaluate_every", "evaluate_sequences", "checkpoint_every",
    "keep_checkpoints", "threads", "buddy_every",    "buddy_dir",          "memory_check"};

// The location of the data may change, its content may not; only a new run reads weights.
constexpr std::array<std::string_view, 2> kDataPlaces{"data.text", "data.megatron"};
constexpr std::string_view kWeightsPlace = "model.weights";
constexpr std::array<std::string_view, 7> kFixed{"train.seed",      "train.shuffle", "train.loss_targets",
                                                 "train.precision", "moe.norm_topk", "moe.shared_ffn",
                                                 "moe.shared_gate"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool counts(const Option& option) {
  if (option.section == "train") return !contains(kUpkeep, option.key);
  if (run::is_for_other_programs(option)) return false;
  return contains(std::array<std::string_view, 4>{"model", "data", "numerics", "moe"}, option.section);
}

bool may_change(std::string_view name) {
  if (contains(kDataPlaces, name) || name == "numerics.repeatable") return true;
  const std::string_view section = name.substr(0, name.find('.'));
  return section != "model" && section != "data" && section != "numerics" && !contains(kFixed, name);
}

// The value of the setting; empty when unknown.
std::string find(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? std::string() : found->second;
}

// A head_size of 0 means hidden / heads.
std::string same_words(const Settings& settings, std::string_view name) {
  const std::string value = find(settings, name);
  if (name != "model.head_size") return value;
  const auto number = [&](const char* key) { return parse_integer(find(settings, key)).value_or(0); };
  return number("model.head_size") * number("model.heads") == number("model.hidden") ? "0" : value;
}

// Differences between the settings that both sides have and that matter.
template <class Matters>
std::vector<SettingChange> differences(const Settings& was, const Settings& is, Matters&& matters) {
  std::vector<SettingChange> found;
  for (const auto& [name, value] : was) {
    const std::string now = find(is, name);
    if (now.empty() || !matters(name) || same_words(was, name) == same_words(is, name)) continue;
    found.push_back({name, value, now, may_change(name)});
  }
  return found;
}

// Whether all gradients are summed over ascending micro-batches, in backwards also over slices from last to
// first: I sums those of norms, W those of matrices, B both; the last stage's forwards sum the output
// layer's. All such schedules have the same bits.
bool adds_in_ascending_order(const schedule::Schedule& schedule) {
  using schedule::Kind;
  std::map<std::pair<int, Kind>, std::pair<int, int>> latest;  // of a stage's F, I and W
  const auto ascends = [&](int stage, Kind sum, const std::pair<int, int>& now) {
    std::pair<int, int>& before = latest.try_emplace({stage, sum}, now).first->second;
    if (before > now) return false;
    before = now;
    return true;
  };
  for (const auto& row : schedule.devices) {
    for (const schedule::Action& action : row) {
      const auto [stage, micro_batch, slice] = action.key;
      const bool forward = action.kind == Kind::Forward;
      if (!is_compute(action.kind) || (forward && stage + 1 < schedule.stages)) continue;
      const std::pair<int, int> now{micro_batch, forward ? slice : -slice};
      const bool whole = action.kind == Kind::Backward;
      if (!ascends(stage, whole ? Kind::BackwardInput : action.kind, now)) return false;
      if (whole && !ascends(stage, Kind::BackwardWeight, now)) return false;
    }
  }
  return true;
}

// Orders that are not ascending are identified by a checksum of the schedule.
std::string gradient_order_of(const schedule::Schedule& schedule) {
  if (adds_in_ascending_order(schedule)) return json_quote("ascending");
  return json_quote("not ascending, " + files::checksum_text(files::checksum(schedule::to_csv(schedule))));
}

std::string exchanged_sums_of(const run::Run& run) {
  std::string text = schedule::to_csv(run.schedule);
  for (const model::KeepSet& keep : run.keep)
    text += keep.has(model::SavedTensor::AttentionOutput) ? "kept\n" : "repeated\n";
  return json_quote(files::checksum_text(files::checksum(text)));
}

// "4", or a list with the slices of each micro-batch if they differ.
std::string slices_of(const run::Run& run) {
  std::vector<std::string> counts;
  for (const auto& slices : run.slices) counts.push_back(std::to_string(slices.size()));
  const bool even = std::ranges::adjacent_find(counts, std::not_equal_to()) == counts.end();
  return even && !counts.empty() ? counts.front() : join(counts, ",");
}

}  // namespace

Settings settings_of(const run::Run& run, int threads) {
  run::Options options = run.options;
  Settings settings;
  const bool gpu = options.train.device == "cuda";
  for (const Option& option : describe(options)) {
    if (!gpu && option.name() == "numerics.repeatable") continue;  // the CPU always repeats its bits
    if (counts(option)) settings.emplace_back(option.name(), value_text(option));
  }
  settings.emplace_back("train.device", json_quote(gpu ? "cuda" : "cpu"));
  settings.emplace_back(kSlices, slices_of(run));
  settings.emplace_back("schedule.cut", json_quote(options.schedule.cut));
  settings.emplace_back(kSliceTokens, std::to_string(options.schedule.slice_tokens));
  settings.emplace_back("schedule.slice_unit", std::to_string(options.schedule.slice_unit));
  settings.emplace_back(kGradientOrder, gradient_order_of(run.schedule));
  const bool exchanges = run.exchange != schedule::ExchangeMode::Off;
  settings.emplace_back("schedule.exchange", json_quote(name_of(run.exchange)));
  if (exchanges) {
    settings.emplace_back("schedule.exchange_limit", std::to_string(options.schedule.exchange_limit));
    settings.emplace_back(kExchangedSums, exchanged_sums_of(run));
  }
  settings.emplace_back("schedule.vocabulary_parallel",
                        options.schedule.vocabulary_parallel ? "true" : "false");
  if (options.data.packing == "balanced" || options.schedule.cut == "work" ||
      (exchanges && options.data.mask == "documents"))
    settings.emplace_back(kAttentionCost, exact_number(options.schedule.attention_cost));
  settings.emplace_back(kThreads, std::to_string(threads));
  return settings;
}

std::string text_of(const SettingChange& change) {
  if (change.name == kGradientOrder)
    return "the schedule adds gradients up in another order than that of the checkpoint's run";
  if (change.name == kExchangedSums)
    return "another schedule or memory.policy: context exchange splits the sums of attention elsewhere";
  return change.name + " = " + printable(change.is, 200) + " where the checkpoint's run had " +
         printable(change.was, 200);
}

std::vector<SettingChange> changes(const Settings& was, const Settings& is) {
  const bool steps_count = find(is, "train.lr_schedule") != "\"constant\"";
  return differences(was, is, [&](std::string_view name) {
    if (name == "train.steps") return steps_count;
    return name != kWeightsPlace && !contains(kDataPlaces, name);
  });
}

std::vector<SettingChange> moved_data(const Settings& was, const Settings& is) {
  return differences(was, is, [](std::string_view name) { return contains(kDataPlaces, name); });
}

bool orders_a_window(const SettingChange& change) {
  if (change.name == kSliceTokens) return change.was == "0" || change.is == "0";  // whether padding counts
  return change.name == kAttentionCost || change.name == "train.batch" || change.name == "train.micro_batch";
}

std::int64_t replicas_of(const Settings& settings) {
  return std::max<std::int64_t>(parse_integer(find(settings, kReplicas)).value_or(0), 0);
}

std::int64_t tensor_shards_of(const Settings& settings) {
  return std::max<std::int64_t>(parse_integer(find(settings, kTensor)).value_or(1), 1);
}

int threads_of(const Settings& settings) {
  const std::int64_t threads = parse_integer(find(settings, kThreads)).value_or(0);
  return threads <= kMostThreads ? static_cast<int>(threads) : 0;
}

}  // namespace penstock::train
