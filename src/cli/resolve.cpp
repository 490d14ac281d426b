// SPDX-License-Identifier: Apache-2.0
#include "cli/resolve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "cli/choose_exchange.h"
#include "cli/exchange.h"
#include "cli/fit_memory.h"
#include "cli/layer_policies.h"
#include "files/mapped_file.h"
#include "files/model_config.h"
#include "schedule/check.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/passes/lower.h"
#include "schedule/slot_grid.h"
#include "schedule/text.h"
#include "train/data.h"
#include "train/mixture.h"
#include "train/tokenizer.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestSchedule = 256 << 20;
constexpr std::int64_t kMostMicroBatches = 1'000'000;
constexpr std::int64_t kUsualSlices = 8;

std::string text(std::int64_t value) { return std::to_string(value); }

void require(bool good, const std::string& message) {
  if (!good) throw InputError(message);
}

std::string multiples_around(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return (below > 0 ? text(below) + " or " : "") + text(below + unit);
}

void refuse_what_is_not_there(const train::RunOptions& options) {
  const auto require_one = [](std::int64_t value, const char* key) {
    require(value == 1, "parallel." + std::string(key) + " = " + text(value) + " is not there yet; use 1");
  };
  require_one(options.parallel.dp, "dp");
  require_one(options.parallel.cp, "cp");
  require_one(options.parallel.tp, "tp");
}

// A shape comes from one place: a key that was given beside model.config would be lost.
void require_no_shape_keys(train::RunOptions& options) {
  train::RunOptions fresh;
  const OptionTable given = train::describe(options), defaults = train::describe(fresh);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].section != "model" || given[i].key == "config" || given[i].key == "weights") continue;
    require(value_text(given[i]) == value_text(defaults[i]),
            given[i].name() + " = " + value_text(given[i]) +
                " and model.config = " + json_quote(options.model.config) + " are both given; keep one");
  }
}

void resolve_model(train::RunOptions& options) {
  model::Shape& shape = options.model.shape;
  if (!options.model.config.empty()) {
    require_no_shape_keys(options);
    shape = on_behalf_of("model.config", [&] { return files::read_model_config(options.model.config); });
    options.model.config.clear();  // its keys stand in the resolved file themselves
  }
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  const bool bytes = options.data.megatron.empty();
  require(bytes || shape.vocab > 0, "model.vocab is missing; data.megatron does not tell it");
  if (shape.vocab == 0) shape.vocab = train::kByteVocabulary;
  model::validate(shape);
  require(!options.schedule.vocabulary_parallel || shape.vocab >= options.parallel.pp,
          "schedule.vocabulary_parallel = true needs as many tokens as devices; model.vocab = " +
              text(shape.vocab) + " is less than parallel.pp = " + text(options.parallel.pp) +
              ": use pp = " + text(shape.vocab) + " or less");
  require(!bytes || shape.vocab >= train::kByteVocabulary,
          "model.vocab = " + text(shape.vocab) + " is less than the " + text(train::kByteVocabulary) +
              " tokens of the byte tokenizer; use " + text(train::kByteVocabulary) + " or more");
}

// At least so large a share of the samples can be kept to.
void check_shares(const Numbers& shares, std::size_t prefixes) {
  require(shares.empty() || shares.size() == prefixes,
          "data.megatron_weights has " + text(static_cast<std::int64_t>(shares.size())) +
              " numbers, but data.megatron has " + text(static_cast<std::int64_t>(prefixes)) +
              " prefixes; give one for each");
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (const double share : shares) {
    require(std::isfinite(sum) && share * train::Mixture::kPeriod >= sum,
            "data.megatron_weights has " + exact_number(share) + " of " + exact_number(sum) +
                " in all; use at least one part in " + text(train::Mixture::kPeriod));
  }
}

void check_data(const train::DataOptions& data) {
  require(!data.text.empty() || !data.megatron.empty(),
          "data.text is missing; name a text file, or data.megatron");
  require(data.text.empty() || data.megatron.empty(),
          "data.text = " + json_quote(data.text) + " and data.megatron are both given; keep one");
  require(data.text.empty() || data.megatron_weights.empty(),
          "data.megatron_weights belongs to data.megatron; leave it out");
  require(
      data.text.empty() || data.split.empty(),
      "data.split = " + json_quote(data.split) + " belongs to data.megatron; use data.validation_fraction");
  const double fraction = data.validation_fraction;
  require(data.split.empty() || fraction == train::DataOptions().validation_fraction,
          "data.validation_fraction = " + exact_number(fraction) +
              " and data.split = " + json_quote(data.split) + " are both given; keep one");
  if (!data.split.empty()) train::parse_split(data.split);
  check_shares(data.megatron_weights, data.megatron.size());
}

void check_training(const train::RunOptions& options) {
  const train::TrainOptions& train = options.train;
  check_data(options.data);
  require(train.batch % train.micro_batch == 0,
          "train.batch = " + text(train.batch) + " is no multiple of train.micro_batch = " +
              text(train.micro_batch) + "; use " + multiples_around(train.batch, train.micro_batch));
  require(train.micro_batches() <= kMostMicroBatches,
          "train.batch = " + text(train.batch) + " makes " + text(train.micro_batches()) +
              " micro-batches; at most " + text(kMostMicroBatches) +
              " are possible: raise train.micro_batch");
  require(train.min_lr <= train.lr, "train.min_lr = " + exact_number(train.min_lr) + " is above train.lr = " +
                                        exact_number(train.lr) + "; use at most that");
  require(train.loss_targets == "s" || options.data.seq_len > 1,
          "data.seq_len = 1 leaves no target with train.loss_targets = \"s-1\"; use 2 or more");
  require(!options.output.dir.empty(), "output.dir is missing; name a directory");
}

schedule::Schedule generate_schedule(const train::RunOptions& options) {
  schedule::Request request;
  request.devices = static_cast<int>(options.parallel.pp);
  request.slices.assign(static_cast<std::size_t>(options.train.micro_batches()),
                        static_cast<int>(options.schedule.slices));
  request.chunks = static_cast<int>(options.schedule.chunks);
  request.group = static_cast<int>(options.schedule.group);
  return schedule::generate(options.schedule.name, request);
}

// Vocabulary parallelism is laid out on the schedule's slots.
void require_slot_grid(const train::RunOptions& options, const schedule::Schedule& schedule) {
  const schedule::ScheduleOptions& chosen = options.schedule;
  if (!chosen.vocabulary_parallel) return;
  const std::string needs =
      "schedule.vocabulary_parallel = true needs a schedule in whose slots all devices run forwards "
      "together, then backwards together; ";
  if (chosen.file.empty()) {
    require(schedule::find_generator(chosen.name).slot_grid,
            needs + "schedule.name = " + json_quote(chosen.name) + " has no such slots: use \"slimpipe\"");
    return;
  }
  const std::string has_none =
      needs + "schedule.file = " + json_quote(chosen.file) + " has no such slots: use slimpipe's";
  require(schedule::find_slot_grid(schedule::compute_only(schedule)).has_value(), has_none);
  // Visits among the slots of a schedule that is not slimpipe's could still wait for each other.
  require(schedule::check(schedule::lower(schedule, {.vocabulary = {.parallel = true}}), 1).empty(),
          has_none);
}

// Slices of a run that asks for none: the usual number, where several chunks want as many as devices at least
// and whole groups, no more than there are units to cut.
std::int64_t default_slices(const train::RunOptions& options) {
  const schedule::ScheduleOptions& chosen = options.schedule;
  const std::int64_t units = (options.data.seq_len + chosen.slice_unit - 1) / chosen.slice_unit;
  if (chosen.chunks == 1) return std::min(kUsualSlices, units);
  const std::int64_t wanted = std::min(std::max(kUsualSlices, options.parallel.pp), units);
  if (chosen.group == 0 || chosen.group > units) return wanted;
  return std::max(wanted / chosen.group, std::int64_t{1}) * chosen.group;
}

// What the generator's own defaults make of the options; the schedule itself is not built yet.
void choose_generator(train::RunOptions& options) {
  schedule::ScheduleOptions& chosen = options.schedule;
  if (chosen.name.empty()) chosen.name = "slimpipe";
  const schedule::Generator& generator = schedule::find_generator(chosen.name);
  const bool sliced = generator.sliced_sibling.empty();
  if (chosen.chunks == 0) chosen.chunks = generator.default_chunks;
  if (chosen.slices == 0) chosen.slices = sliced ? default_slices(options) : 1;
}

void require_match(const std::string& file, const char* what, std::int64_t found, const std::string& key,
                   std::int64_t wanted) {
  require(found == wanted, "schedule.file = " + json_quote(file) + " has " + text(found) + " " + what +
                               ", but " + key + " = " + text(wanted));
}

schedule::Schedule read_schedule(train::RunOptions& options) {
  schedule::ScheduleOptions& chosen = options.schedule;
  require(chosen.name.empty(), "schedule.name = " + json_quote(chosen.name) + " and schedule.file = " +
                                   json_quote(chosen.file) + " are both given; keep one");
  schedule::Schedule read = on_behalf_of("schedule.file", [&] {
    return schedule::parse_csv(files::read_text(chosen.file, kLongestSchedule), chosen.file);
  });
  const auto findings = schedule::check(read, 1);
  if (!findings.empty()) {
    throw NoAnswer(chosen.file + ": not a legal schedule: " + findings.front().text + "; see penstock check");
  }
  require_match(chosen.file, "devices", read.device_count(), "parallel.pp", options.parallel.pp);
  require_match(chosen.file, "micro-batches", read.micro_batches(), "train.batch / train.micro_batch",
                options.train.micro_batches());
  const auto [least, greatest] = std::ranges::minmax(read.slices);
  if (chosen.slices != 0) {
    require_match(chosen.file, "slices in some micro-batch", least == chosen.slices ? greatest : least,
                  "schedule.slices", chosen.slices);
  } else if (least == greatest) {
    chosen.slices = least;
  }
  return read;
}

void check_stages(const train::RunOptions& options, const schedule::Schedule& schedule) {
  const std::int64_t layers = options.model.shape.layers;
  const std::int64_t devices = options.parallel.pp,
                     chunks = std::max<std::int64_t>(schedule.stages / devices, 1);
  const std::string fewer = layers < devices
                                ? "parallel.pp = " + text(std::max<std::int64_t>(layers / chunks, 1))
                                : "schedule.chunks = " + text(layers / devices);
  require(schedule.stages <= layers,
          "parallel.pp = " + text(devices) + (chunks > 1 ? " with schedule.chunks = " + text(chunks) : "") +
              " makes " + text(schedule.stages) + " stages, which need a layer each; model.layers = " +
              text(layers) + ": use " + fewer + " or fewer, or " + text(schedule.stages) + " layers or more");
}

}  // namespace

ResolvedRun resolve(train::RunOptions options, int threads) {
  refuse_what_is_not_there(options);
  resolve_model(options);
  check_training(options);
  ResolvedRun run;
  if (options.schedule.file.empty()) {
    choose_generator(options);
    model::cut_into_slices(options.data.seq_len, static_cast<int>(options.schedule.slices),
                           options.schedule.slice_unit);
    run.schedule = generate_schedule(options);
  } else {
    run.schedule = read_schedule(options);
    for (const int slices : run.schedule.slices) {
      model::cut_into_slices(options.data.seq_len, slices, options.schedule.slice_unit);
    }
  }
  require_slot_grid(options, run.schedule);
  check_stages(options, run.schedule);
  run.layers = model::split_layers(options.model.shape.layers, run.schedule.stages, options.parallel.layers);
  run.options = std::move(options);
  run.threads = run.options.train.threads > 0 ? static_cast<int>(run.options.train.threads) : threads;
  run.keep = layer_policies(run.options.memory, run.layers, std::ranges::max(run.schedule.slices) > 1);
  const std::string& exchange = run.options.schedule.exchange;
  if (exchange != "off" && exchange != "auto") check_exchange(run);
  choose_memory(run);
  choose_exchange(run);  // for the policy that is now known
  return run;
}

void check_trainable(const train::RunOptions& options) { refuse_what_is_not_there(options); }

std::vector<model::TokenRange> cut(const ResolvedRun& run, int slices) {
  return model::cut_into_slices(run.options.data.seq_len, slices, run.options.schedule.slice_unit);
}

void check_ranks(const schedule::ParallelOptions& parallel, std::int64_t ranks) {
  const std::int64_t needed = parallel.dp * parallel.pp * parallel.cp * parallel.tp;
  require(ranks == needed, text(ranks) + (ranks == 1 ? " rank was" : " ranks were") +
                               " started, but parallel.pp = " + text(parallel.pp) + " needs " + text(needed) +
                               "; start " + text(needed) + ", or set parallel.pp = " + text(ranks));
}

}  // namespace penstock::cli
