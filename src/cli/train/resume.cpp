// SPDX-License-Identifier: Apache-2.0
#include "cli/train/resume.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <optional>
#include <span>

#include "base/option_text.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/tell.h"
#include "cli/train/copies_in_memory.h"
#include "cli/train/fixed_numerics.h"
#include "comm/texts.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "files/safetensors.h"
#include "files/strict_json.h"
#include "run/replicas.h"
#include "run/resolve/choose.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/first_at_work.h"
#include "train/checkpoint/settings.h"
#include "train/record/start_mesh.h"
#include "train/record/step_lines.h"
#include "train/run.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestSummary = std::size_t{1} << 28;

template <class T>
void broadcast_from_first(T& value, comm::Communicator& world) {
  world.broadcast(comm::writable_bytes_of(value), 0);
}

std::vector<std::int64_t> steps_on_first(const train::CheckpointDirectory& directory,
                                         comm::Communicator& world) {
  std::vector<std::int64_t> steps;
  const Refusal refusal = agree(refusal_of([&] {
                                  if (world.rank() == 0) steps = directory.steps();
                                }),
                                world);
  if (refusal) throw InputError(refusal.text);
  auto count = static_cast<std::int64_t>(steps.size());
  broadcast_from_first(count, world);
  steps.resize(static_cast<std::size_t>(count));
  world.broadcast(std::as_writable_bytes(std::span(steps)), 0);
  return steps;
}

// The number of steps in summary.json; 0 if it is missing or unreadable.
std::int64_t summarised_steps(const std::string& directory, comm::Communicator& world) {
  std::int64_t steps = 0;
  const std::string path = (fs::path(directory) / files::kSummary).string();
  std::error_code error;
  if (world.rank() == 0 && fs::is_regular_file(path, error)) {
    const Refusal unreadable = refusal_of([&] {
      const auto summary = files::parse_or_discard(files::read_text(path, kLongestSummary));
      const auto told = summary.find("steps");
      if (told != summary.end() && told->is_number_unsigned()) steps = told->get<std::int64_t>();
    });
    if (unreadable) tell_remark(unreadable.text);
  }
  broadcast_from_first(steps, world);
  return steps;
}

// Whether the trained weights exist, without which the run is not finished; damaged ones are written again.
bool has_trained_weights(const std::string& directory, comm::Communicator& world) {
  std::error_code error;
  const std::string weights = (fs::path(directory) / files::kWeights).string();
  bool there = world.rank() == 0 && fs::is_regular_file(weights, error);
  if (there) {
    const Refusal damage = refusal_of([&] { files::Safetensors{weights}; });
    if (damage) tell_remark(damage.text);
    there = !damage;
  }
  broadcast_from_first(there, world);
  return there;
}

// Names the key that determines a setting that the run file leaves out.
std::string source_of(const std::string& name, const run::Options& options) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSources{
      {{"data.window", "train.batch"},
       {"data.mask", "whether the data is a text"},
       {"moe.shared_ffn", "moe.shared_experts"},
       {"model.ffn", "model.moe_ffn"},
       {"numerics.replicas", "parallel.dp"},
       {"numerics.tensor", "parallel.tp"}}};
  const auto found = std::ranges::find(kSources, name, &std::pair<std::string_view, std::string_view>::first);
  const bool of_config = !options.model.config.empty() && name.starts_with("model.");
  if (!of_config && found == kSources.end()) return {};
  const std::string source = of_config ? "model.config" : std::string(found->second);
  return " (by default it follows from " + source + ")";
}

// Whether a balancing window is partly drawn. Windows restart with every epoch; a mixture has no epochs.
bool inside_a_window(std::int64_t drawn, const run::DataOptions& data, std::int64_t samples) {
  if (data.packing != "balanced") return false;
  const std::int64_t of_epoch =
      data.megatron_weights.empty() ? drawn % std::max<std::int64_t>(samples, 1) : drawn;
  return of_epoch % data.window != 0;
}

void require_fit(const train::CheckpointFacts& facts, const std::string& checkpoint, const run::Run& run,
                 const train::TokenData& data) {
  const bool inside = inside_a_window(facts.samples_drawn, run.options.data, data.samples());
  for (const auto& change : train::changes(facts.settings, train::settings_of(run, 1))) {
    if (!change.fits)
      throw InputError(checkpoint + " does not fit: " + train::text_of(change) + "; set it back" +
                       source_of(change.name, run.options));
    if (inside && train::orders_a_window(change))
      throw InputError(checkpoint + " does not fit: " + train::text_of(change) +
                       ", and the order of the samples in a window of data.window = " +
                       std::to_string(run.options.data.window) +
                       " depends on it; set it back until a window is done");
  }
  if (facts.samples_per_epoch != data.samples()) {
    throw InputError(checkpoint + " does not fit: the data has " + std::to_string(data.samples()) +
                     " samples where the checkpoint's run had " + std::to_string(facts.samples_per_epoch) +
                     "; give the same data");
  }
  const train::Content content = data.content();
  const auto require_same = [&](const std::optional<std::uint64_t>& was, std::uint64_t is, const char* has) {
    if (was && *was != is)
      throw InputError(checkpoint + " does not fit: the " + has +
                       " than the checkpoint's run had; give the same data");
  };
  require_same(facts.content, content.tokens, "data has other tokens");
  // Before there was `held_out`, marks held the mask also if data.loss = "all" ignores it.
  if (facts.held_out || run.options.data.loss != "all")
    require_same(facts.marks, content.marks, "data has other documents or targets (PREFIX.mask)");
  require_same(facts.held_out, content.held_out, "held-out data has other tokens, documents or targets");
  if (facts.step > run.options.train.steps) {
    throw InputError("train.steps = " + std::to_string(run.options.train.steps) + " is less than the " +
                     counted(facts.step, "step") + " that " + checkpoint + " has done; use that or more");
  }
}

// What became of the checkpoints that metrics.jsonl tells of; empty if it tells of none.
std::string loss_of_checkpoints(const std::string& run) {
  const std::string metrics = (fs::path(run) / files::kMetrics).string();
  std::int64_t step = 0;
  refusal_of([&] { step = train::newest_checkpoint(files::MappedFile(metrics).text()); });
  if (step == 0) return {};
  return "no checkpoint, though its " + std::string(files::kMetrics) + " tells of one of step " +
         std::to_string(step) + "; is the disk of " +
         json_quote((fs::path(run) / files::kCheckpoints).string()) + " mounted? To begin again, move " +
         files::kMetrics + " away";
}

// Without a valid checkpoint, only a run that broke off before its first one may start again.
Resumption begin_again(const std::string& run, const std::vector<std::string>& damaged, bool ended,
                       const std::string& lost) {
  const std::string there = "output.dir = " + json_quote(run) + " holds ";
  if (!damaged.empty()) {
    throw InputError(there + "no valid checkpoint: " + damaged.front() +
                     (damaged.size() > 1 ? "; nor can the older ones" : "") +
                     "; bring one back, or name another directory for a new run");
  }
  if (ended) {
    throw InputError(there + "a run that ended without a checkpoint; name another directory for a new one");
  }
  if (!lost.empty()) throw InputError(there + lost);
  return {.remarks = {there + "no checkpoint yet; the run begins again at step 1"}};
}

// The mesh of the steps up to `step`, by metrics.jsonl or, in runs of earlier versions, by the run file.
std::optional<run::ParallelOptions> mesh_before(const std::string& directory, std::int64_t step) {
  const std::string path = (fs::path(directory) / files::kMetrics).string();
  std::optional<run::ParallelOptions> mesh;
  const auto read = [&] { mesh = train::mesh_of_step(files::MappedFile(path).text(), step, path); };
  if (!refusal_of(read) && mesh) return mesh;
  const std::optional<run::Options> was = options_before(directory);
  return was ? std::optional(was->parallel) : std::nullopt;
}

// Keeps cp_mode for an unchanged number of context ranks, unless the run file sets it.
void take_context_mode(run::Options& options) {
  if (options.parallel.cp == 1 || options.parallel.cp_mode != "auto") return;
  const auto was = mesh_before(options.output.dir, options.train.steps);
  if (was && was->cp == options.parallel.cp) options.parallel.cp_mode = was->cp_mode;
}

// Keeps the slices chosen by speed, and the chunks too if the number of devices is unchanged.
void take_slices(run::Options& options) {
  run::ScheduleOptions& chosen = options.schedule;
  if (!run::leaves_slices_open(options)) return;
  const std::optional<run::Options> was = options_before(options.output.dir);
  if (!was || !was->schedule.file.empty()) return;
  if (chosen.slices == 0 && chosen.slice_tokens == 0 && was->schedule.slices > 0)
    chosen.slices = was->schedule.slices;
  if (chosen.chunks == 0 && was->parallel.pp == options.parallel.pp) chosen.chunks = was->schedule.chunks;
}

// Context ranks split sums over tokens and keys. Another number of replicas adds them in another tree, unless
// both numbers are powers of two (mesh/mesh.h).
bool changes_sums_of_context(const run::ParallelOptions& is, const run::ParallelOptions& was) {
  if (is.cp == 1 && was.cp == 1) return false;
  const auto power_of_two = [](std::int64_t ranks) {
    return std::has_single_bit(static_cast<std::uint64_t>(ranks));
  };
  return is.cp != was.cp || is.cp_mode != was.cp_mode ||
         (is.dp != was.dp && !(power_of_two(is.dp) && power_of_two(was.dp)));
}

// Reads the facts of a checkpoint, which all ranks verify together.
Refusal read_together(const train::CheckpointDirectory& directory, std::int64_t step,
                      comm::Communicator& world, train::CheckpointFacts& facts) {
  train::AllAtWork work{comm::World(world)};
  const Refusal damage = refusal_of([&] {
    facts = train::read_checkpoint_facts(directory, step);
    train::verify_checkpoint(directory.of_step(step), facts, world.rank(), world.size(),
                             [&] { work.still_working(); });
  });
  work.end();
  return agree(damage, world);
}

// The same for a checkpoint that only rank 0 sees: it verifies while the others wait.
Refusal read_by_first(const train::CheckpointDirectory& directory, std::int64_t step,
                      comm::Communicator& world, train::CheckpointFacts& facts) {
  const bool reads = world.rank() == 0;
  train::FirstAtWork work{comm::World(world)};
  Refusal damage;
  if (reads) {
    damage = refusal_of([&] {
      facts = train::read_checkpoint_facts(directory, step);
      train::verify_checkpoint(directory.of_step(step), facts, 0, 1, [&] { work.still_working(); });
    });
    work.done();
  } else {
    work.await_end();
  }
  damage = agree(damage, world);
  if (damage) return damage;
  const std::string text = comm::broadcast_text(reads ? to_json(facts) : std::string(), 0, world);
  facts = train::parse_checkpoint_facts(text, directory.of_step(step));
  return {};
}

std::shared_ptr<train::SavedState> state_of_step(const train::CheckpointDirectory& directory,
                                                 std::int64_t step, const run::Run& run,
                                                 comm::Communicator& world) {
  const std::string checkpoint = directory.of_step(step);
  if (run.options.output.gather) return train::state_in_files_of_first(checkpoint, comm::World(world));
  return train::state_in_files(checkpoint);
}

}  // namespace

Resumption choose_state(const run::Run& run, const train::TokenData& data, comm::Communicator& world) {
  const train::CheckpointDirectory directory = train::checkpoints_of(run);
  const std::vector<std::int64_t> steps = steps_on_first(directory, world);
  const std::int64_t summarised = summarised_steps(run.options.output.dir, world);
  const std::int64_t finished = has_trained_weights(run.options.output.dir, world) ? summarised : 0;
  Resumption chosen;
  const auto choose = [&](train::Resumed from) {
    require_fit(from.facts, from.state->name(), run, data);
    chosen.finished = finished == from.facts.step && from.facts.step == run.options.train.steps;
    if (!chosen.remarks.empty())
      chosen.remarks.push_back("continuing from " + from.state->name() + " instead");
    chosen.from = std::move(from);
    return chosen;
  };
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    // Copies of the checkpoint's own step are for a damaged one: the first damaged byte would be found when
    // this start has removed them.
    if (auto copies = newest_copies(run.options, *step, world))
      return choose({std::move(copies->facts), std::move(copies->state), *step});
    train::CheckpointFacts facts;
    const Refusal damage = run.options.output.gather ? read_by_first(directory, *step, world, facts)
                                                     : read_together(directory, *step, world, facts);
    if (!damage) return choose({facts, state_of_step(directory, *step, run, world), *step});
    chosen.remarks.push_back("checkpoint " + directory.of_step(*step) + " cannot be used: " + damage.text);
  }
  if (auto copies = newest_copies(run.options, 0, world))
    return choose({std::move(copies->facts), std::move(copies->state), 0});
  chosen.finished = world.rank() == 0 && chosen.remarks.empty() && finished == run.options.train.steps &&
                    is_run_before(run.options);
  broadcast_from_first(chosen.finished, world);  // others may not see the directory
  if (chosen.finished) return chosen;
  const std::string lost = comm::broadcast_text(
      world.rank() == 0 ? loss_of_checkpoints(run.options.output.dir) : std::string(), 0, world);
  return begin_again(run.options.output.dir, chosen.remarks, summarised > 0, lost);
}

int fit_ranks(run::Options& options, int ranks, bool resumes) {
  if (resumes) {
    take_numerics(options);
    take_context_mode(options);
    take_slices(options);
  }
  const bool automatic = options.parallel.dp == 0;
  run::fit_replicas(options, ranks);
  const run::ParallelOptions& mesh = options.parallel;
  const std::int64_t needed = mesh.pp * mesh.dp * mesh.cp * mesh.tp;
  return automatic ? static_cast<int>(std::min<std::int64_t>(needed, ranks)) : ranks;
}

std::vector<std::string> changed_mesh(const run::Run& run, std::int64_t step) {
  const std::optional<run::ParallelOptions> before = mesh_before(run.options.output.dir, step);
  if (!before) return {};
  run::Options is = run.options, was = run.options;
  was.parallel = *before;
  const bool tolerance =
      run.exchange != schedule::ExchangeMode::Off || run.sharded_vocabulary() ||
      changes_sums_of_context(is.parallel, was.parallel) ||
      (run.shape().experts > 1 && (is.parallel.ep != was.parallel.ep || is.parallel.dp != was.parallel.dp));
  const bool without_context = is.parallel.cp == 1 || was.parallel.cp == 1;
  const std::string shards = ", with numerics.tensor = " + std::to_string(run.tensor_shards()) + " as before";
  std::vector<std::string> lines;
  for (const Option& option : changed(run::describe(is), run::describe(was))) {
    if (option.section != "parallel" || option.key == "layers") continue;
    if (option.key == "cp_mode" && without_context) continue;
    const OptionTable table = run::describe(was);
    lines.push_back(option.name() + " = " + value_text(option) + " where the run had " +
                    value_text(find_option(table, option.section, option.key, files::kRunFile)) +
                    (option.key == "tp" ? shards : "") +
                    (tolerance ? ": the run continues, but not bit-identical to one that never stopped"
                               : ": the run continues, and this changes no bit"));
  }
  return lines;
}

std::vector<std::string> changed_settings(const train::CheckpointFacts& checkpoint, const run::Run& run,
                                          int threads) {
  std::vector<std::string> lines;
  for (const auto& change : train::changes(checkpoint.settings, train::settings_of(run, threads))) {
    lines.push_back(train::text_of(change) +
                    ": the run continues, but not bit-identical to one that never stopped");
  }
  if (checkpoint.content) return lines;  // the data is known to be the same
  for (const auto& change : train::moved_data(checkpoint.settings, train::settings_of(run, threads)))
    lines.push_back(train::text_of(change) + ": this checkpoint does not tell whether that is the same data");
  return lines;
}

}  // namespace penstock::cli
