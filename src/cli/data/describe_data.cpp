// SPDX-License-Identifier: Apache-2.0
#include "cli/data/describe_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "base/whole.h"
#include "cli/automatic_threads.h"
#include "cli/data/choices.h"
#include "cli/profile/speeds.h"
#include "files/mapped_file.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "run/replicas.h"
#include "run/resolve/resolve.h"
#include "run/settle.h"
#include "train/machine_probe.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestList = std::size_t{1} << 30;
constexpr std::int64_t kMostSteps = 10'000;
constexpr std::int64_t kMostCuts = std::int64_t{1} << 22;  // each is packed separately, in about 80 bytes

// Reads document lengths in tokens, one per line. Documents longer than a sample are cut into samples.
std::vector<Tokens> read_lengths(const std::string& path, Tokens seq_len) {
  std::vector<Tokens> lengths;
  const std::string text = files::read_text(path, kLongestList);
  std::int64_t line = 0, cuts = 0;
  for (const std::string_view entry : split(without_byte_order_mark(text), '\n')) {
    ++line;
    if (trim(entry).empty()) continue;
    const auto length = parse_integer(trim(entry));
    if (!length || *length < 1 || *length >= std::int64_t{1} << 40)
      throw InputError(path + ", line " + std::to_string(line) + ": \"" + printable(entry) +
                       "\" is not a number of tokens of a document");
    cuts += (*length - 1) / std::max<Tokens>(seq_len, 1);
    if (cuts > kMostCuts)
      throw InputError(path + ", line " + std::to_string(line) + ": \"" + printable(entry) +
                       "\": the documents so far are cut more than " + std::to_string(kMostCuts) +
                       " times by data.seq_len = " + std::to_string(seq_len) +
                       "; give shorter or fewer ones, such as every tenth");
    lengths.push_back(*length);
  }
  if (lengths.empty()) throw InputError(path + ": no document's length");
  return lengths;
}

// Whether the file is a list of lengths, by its first line, rather than a run file.
bool is_list(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // another message says so
  const std::string text = files::read_text(path, kLongestList);
  for (const std::string_view line : split(without_byte_order_mark(text), '\n')) {
    if (!trim(line).empty()) return parse_integer(trim(line)).has_value();
  }
  return false;
}

// Documents and their tokens, in bins of powers of two.
std::string histogram(std::vector<Tokens> lengths) {
  std::ranges::sort(lengths);
  const auto tokens = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), Tokens{0}));
  const auto at = [&](std::int64_t percent) {  // the shortest that so many documents are no longer than
    return lengths[static_cast<std::size_t>(ceil_div(percent * std::ssize(lengths), 100) - 1)];
  };
  std::string text = "documents " + print_count(static_cast<double>(lengths.size())) + " of " +
                     print_count(tokens) + " tokens; mean " +
                     number(tokens / static_cast<double>(lengths.size()), 0) + ", median " +
                     std::to_string(at(50)) + ", 90 % up to " + std::to_string(at(90)) + ", 99 % up to " +
                     std::to_string(at(99)) + ", longest " + std::to_string(lengths.back()) + "\n\n";
  Rows rows{{"tokens of a document", "documents", "of all tokens", ""}};
  constexpr double kBar = 40;
  for (std::size_t first = 0; first < lengths.size();) {
    Tokens below = 1;
    while (below <= lengths[first]) below *= 2;
    std::size_t end = first;
    Tokens held = 0;
    for (; end < lengths.size() && lengths[end] < below; ++end) held += lengths[end];
    const double documents = static_cast<double>(end - first) / static_cast<double>(lengths.size());
    const double share = static_cast<double>(held) / tokens;
    rows.push_back({std::to_string(below / 2) + " to " + std::to_string(below - 1), percent(documents),
                    percent(share), std::string(static_cast<std::size_t>(std::lround(kBar * share)), '#')});
    first = end;
  }
  return text + columns(rows, "lrrl");
}

// Packing and cut, and the other keys that the run file would have to change.
std::string keys_of(run::Options given, const DataChoice& choice) {
  run::Options chosen = with_choice(given, choice);
  const OptionTable was = run::describe(given), is = run::describe(chosen);
  Words keys;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const std::string key = is[i].name(), value = value_text(is[i]);
    if (key != "data.packing" && key != "schedule.cut" && value == value_text(was[i])) continue;
    keys.push_back(is_given(is[i]) ? key + " = " + value : "without " + key);
  }
  return join(keys, ", ");
}

std::string slices_of(const DataChoice& choice) {
  if (choice.slice_tokens > 0) return "of " + std::to_string(choice.slice_tokens);
  return choice.slices > 0 ? std::to_string(choice.slices) : "as given";
}

std::string table_of(const std::vector<DataOutcome>& outcomes, const DataOutcome& best) {
  Rows rows{{"", "packing", "cut", "slices", "padding", "cut documents", "attended", "slots", "micro-batches",
             "replicas", "idle", "step", "tokens/s", "work/s"}};
  for (const DataOutcome& outcome : outcomes) {
    const DataChoice& choice = outcome.choice;
    rows.push_back({&outcome == &best ? "*" : "", choice.packing, choice.cut, slices_of(choice),
                    percent(outcome.padding), percent(outcome.cut_documents), percent(outcome.attended),
                    outcome.slots > 0 ? number(outcome.slots, 3) : "-", number(outcome.micro_batches, 3),
                    number(outcome.replicas, 3), percent(outcome.idle), print_seconds(outcome.step_s),
                    print_count(outcome.tokens_per_second), print_count(outcome.work_per_second)});
  }
  return columns(rows, "llllr");
}

std::string json_of(const std::vector<DataOutcome>& outcomes) {
  std::vector<std::string> rows;
  for (const DataOutcome& outcome : outcomes) {
    const auto member = [](const char* key, double value) {
      return std::string(",\"") + key + "\":" + exact_number(value);
    };
    rows.push_back(
        "{\"packing\":" + json_quote(outcome.choice.packing) + ",\"cut\":" + json_quote(outcome.choice.cut) +
        ",\"slice_tokens\":" + std::to_string(outcome.choice.slice_tokens) +
        ",\"slices\":" + std::to_string(outcome.choice.slices) + member("padding", outcome.padding) +
        member("cut_documents", outcome.cut_documents) + member("attended", outcome.attended) +
        member("work_of_slots", outcome.slots) + member("work_of_micro_batches", outcome.micro_batches) +
        member("work_of_replicas", outcome.replicas) + member("idle", outcome.idle) +
        member("step_s", outcome.step_s) + member("planning_s", outcome.planning_s) +
        member("tokens_per_second", outcome.tokens_per_second) +
        member("work_per_second", outcome.work_per_second) + "}");
  }
  return "[" + join(rows, ",\n ") + "]\n";
}

// The run file's options, for its data or for documents of the lengths in `list`.
run::Options options_of(const std::string& file, const std::vector<std::string>& overrides,
                        const std::string& list) {
  run::Options options = run::read_fitted_options(file, overrides);
  if (!list.empty()) {  // any name works: nothing is read
    options.data.text.clear();
    options.data.megatron = {list};
    options.data.megatron_weights.clear();
    options.data.split.clear();
    options.data.validation_fraction = 0;  // nothing is evaluated
    if (options.model.config.empty() && options.model.shape.vocab == 0)
      options.model.shape.vocab = files::kByteVocabulary;
  }
  if (options.data.mask == "auto" && options.data.text.empty()) options.data.mask = "documents";
  return options;
}

// As given, or about the length of the run file's slices; 0 if micro-batches cannot differ in length.
Tokens slice_tokens_of(const run::Run& given) {
  const run::Options& options = given.options;
  if (options.schedule.slice_tokens > 0) return options.schedule.slice_tokens;
  const bool may_differ = options.train.micro_batch == 1 && given.mesh.context == 1 && given.is_sliced() &&
                          options.schedule.chunks == 1 && options.schedule.file.empty() &&
                          options.moe.balance_coefficient == 0 && options.moe.z_coefficient == 0;
  if (!may_differ) return 0;
  const Tokens slices = options.schedule.slices;
  return std::max(ceil_div(options.data.seq_len, slices), options.schedule.slice_unit);
}

}  // namespace

Exit describe_data(const DataFlags& flags) {
  if (flags.steps < 1 || flags.steps > kMostSteps)
    throw InputError("--steps " + std::to_string(flags.steps) + ": expected 1 to " +
                     std::to_string(kMostSteps));
  const bool two = !flags.second.empty();
  if (two && flags.first.ends_with(".toml") && !flags.second.ends_with(".toml"))
    throw InputError(printable(flags.second, 500) + ": a list of lengths comes before the run file");
  if (!two && is_list(flags.first))
    throw InputError(printable(flags.first, 500) + ": is a list of lengths; the run file comes after it");
  const std::string list = two ? flags.first : std::string();
  const run::Options options = options_of(two ? flags.second : flags.first, flags.overrides, list);
  const std::vector<Tokens> lengths =
      list.empty() ? std::vector<Tokens>() : read_lengths(list, options.data.seq_len);
  run::Machine machine =
      train::probe_machine(automatic_threads(static_cast<int>(run::mesh_of(options).world())));
  const Speeds speeds = speeds_of(flags.hardware, options);
  machine.hardware = speeds.hardware;
  const run::Run given = run::resolve(options, machine);
  if (!flags.json) std::cout << histogram(open_data(given, lengths).document_lengths()) << "\n" << std::flush;

  std::vector<DataOutcome> outcomes;
  for (const DataChoice& choice : choices_of(options, slice_tokens_of(given)))
    outcomes.push_back(outcome_of(options, choice, lengths, flags.steps, machine));
  if (flags.json) {
    std::cout << json_of(outcomes);
    return Exit::Done;
  }
  const DataOutcome& best = *std::ranges::max_element(outcomes, {}, &DataOutcome::work_per_second);
  std::cout << "means of the first " << counted(flags.steps, "step")
            << ", simulated. Of slots, micro-batches and replicas: the greatest work "
               "over the mean.\n"
            << "speeds  " << described(speeds) << "\n\n"
            << table_of(outcomes, best) << "\nbest  " << keys_of(options, best.choice) << "\n";
  return Exit::Done;
}

}  // namespace penstock::cli
