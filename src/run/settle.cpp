// SPDX-License-Identifier: Apache-2.0
#include "run/settle.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/option_text.h"
#include "base/refusal.h"
#include "base/text.h"
#include "base/whole.h"
#include "files/model_config.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "run/context.h"
#include "run/data_shares.h"
#include "run/replicas.h"
#include "run/step_plan.h"
#include "run/tensor.h"
#include "schedule/generators/generator.h"

namespace penstock::run {
namespace {

constexpr std::int64_t kMostMicroBatches = 1'000'000;
constexpr std::int64_t kUsualSlices = 8;

// The shape comes from one place: keys next to model.config would be ignored.
void require_no_shape_keys(Options& options) {
  Options fresh;
  for (const Option& option : changed(describe(options), describe(fresh))) {
    if (!is_of_shape(option)) continue;
    throw InputError(option.name() + " = " + value_text(option) +
                     " and model.config = " + json_quote(options.model.config) + " are both given; keep one");
  }
}

void check_vocabulary(const Options& options) {
  const std::int64_t tensor = options.numerics.tensor, vocab = options.model.shape.vocab;
  const std::int64_t shards = tensor * options.parallel.pp;
  const char* product = tensor == 1                     ? "parallel.pp = "
                        : tensor == options.parallel.tp ? "parallel.tp · pp = "
                                                        : "numerics.tensor · parallel.pp = ";
  require(!options.schedule.vocabulary_parallel || vocab >= shards,
          "schedule.vocabulary_parallel = true needs as many tokens as devices; model.vocab = " +
              std::to_string(vocab) + " is less than " + product + std::to_string(shards) +
              ": use pp = " + std::to_string(std::max<std::int64_t>(vocab / tensor, 1)) + " or less");
}

void check_byte_vocabulary(const Options& options) {
  const std::int64_t vocab = options.model.shape.vocab;
  require(options.data.text.empty() || vocab >= files::kByteVocabulary,
          "model.vocab = " + std::to_string(vocab) + " is less than the " +
              std::to_string(files::kByteVocabulary) +
              " tokens of the byte tokenizer, which data.text takes; use " +
              std::to_string(files::kByteVocabulary) + " or more, or data.megatron");
}

// The mesh is valid: parallel.ep divides the ranks of a stage.
void check_experts(const Options& options) {
  const std::int64_t experts = options.model.shape.experts, ranks = options.parallel.ep;
  const std::int64_t of_both = std::gcd(experts, mesh_of(options).ranks_per_stage());
  require(experts % ranks == 0, "parallel.ep = " + std::to_string(ranks) +
                                    " does not divide model.experts = " + std::to_string(experts) + "; use " +
                                    divisors_near(ranks, of_both));
  const NumericsOptions& numerics = options.numerics;
  require(experts == 1 || numerics.tensor == options.parallel.tp,
          "numerics.tensor = " + std::to_string(numerics.tensor) +
              " with model.experts = " + std::to_string(experts) +
              ": experts work on a rank's own tokens, not on those of logical shards; use parallel.tp = " +
              std::to_string(numerics.tensor) +
              ", or in a new run numerics.tensor = " + std::to_string(options.parallel.tp));
  require(!options.moe.forced_balance || options.moe.skew == 0,
          "moe.forced_balance = true and moe.skew = " + exact_number(options.moe.skew) +
              " are both given; keep one");
  require(options.moe.balance_over == "micro_batch" || options.moe.balance_coefficient > 0,
          "moe.balance_over = " + json_quote(options.moe.balance_over) +
              " belongs to moe.balance_coefficient above 0; leave it out");
  Options fresh;
  OptionTable given, unset;
  ModelOptions model = options.model;
  MoeOptions moe = options.moe;
  describe(moe, model, given);
  describe(fresh.moe, fresh.model, unset);
  for (const Option& option : changed(given, unset))
    require(experts > 1, option.name() + " = " + value_text(option) +
                             " applies to layers with experts; use model.experts above 1, or leave it out");
}

void settle_mesh(Options& options) {
  settle_tensor(options);
  mesh::validate(mesh_of(options));
  check_experts(options);
  check_vocabulary(options);
  settle_context(options);
}

void check_micro_batches(const TrainOptions& train, std::int64_t replicas) {
  const std::int64_t micro_batches = train.batch / (train.micro_batch * replicas);
  require(micro_batches <= kMostMicroBatches, "train.batch = " + std::to_string(train.batch) + " makes " +
                                                  std::to_string(micro_batches) + " micro-batches; at most " +
                                                  std::to_string(kMostMicroBatches) +
                                                  " are possible: raise train.micro_batch");
}

void check_training(Options& options) {
  TrainOptions& train = options.train;
  if (train.loss_tile_tokens == 0) train.loss_tile_tokens = model::usual_loss_tile(train.device == "cuda");
  check_data(options.data);
  settle_mask(options.data);
  settle_packing(options.data, train.batch);
  settle_replicas(options);
  check_micro_batches(train, options.parallel.dp);
  require(static_cast<double>(train.batch) * static_cast<double>(options.data.seq_len) <= kMostStepTokens,
          "train.batch = " + std::to_string(train.batch) + " times data.seq_len = " +
              std::to_string(options.data.seq_len) + " are more than 1e12 tokens a step");
  require(train.lr_schedule != "constant" || train.min_lr == TrainOptions{}.min_lr,
          "train.min_lr = " + exact_number(train.min_lr) +
              " applies to the cosine: use train.lr_schedule = \"cosine\", or leave it out");
  require(train.lr_schedule == "constant" || train.min_lr <= train.lr,
          "train.min_lr = " + exact_number(train.min_lr) +
              (train.min_lr == TrainOptions{}.min_lr ? ", the default," : "") +
              " is above train.lr = " + exact_number(train.lr) + "; use at most that");
  require(train.loss_targets == "s" || options.data.seq_len > 1,
          "data.seq_len = 1 leaves no target with train.loss_targets = \"s-1\"; use 2 or more");
  require(!options.output.dir.empty(), "output.dir is missing; name a directory");
}

// Default number of slices: the usual one, but with several chunks at least the number of devices and whole
// groups, and at most the number of units.
std::int64_t default_slices(const Options& options) {
  const ScheduleOptions& chosen = options.schedule;
  const std::int64_t units = ceil_div(options.data.seq_len, chosen.slice_unit);
  if (chosen.chunks == 1) return std::min(kUsualSlices, units);
  const std::int64_t wanted = std::min(std::max(kUsualSlices, options.parallel.pp), units);
  if (chosen.group == 0 || chosen.group > units) return wanted;
  return std::max(wanted / chosen.group, std::int64_t{1}) * chosen.group;
}

// The generator's defaults; the schedule itself is not generated yet.
void choose_generator(Options& options) {
  ScheduleOptions& chosen = options.schedule;
  if (chosen.name.empty()) chosen.name = "slimpipe";
  const schedule::Generator& generator = schedule::find_generator(chosen.name);
  const bool sliced = generator.sliced_sibling.empty();
  if (chosen.chunks <= 0) chosen.chunks = generator.default_chunks;
  if (chosen.slices <= 0) chosen.slices = sliced ? default_slices(options) : 1;
}

// Checks the times and memory for which greedy makes a schedule.
void check_costs(const ScheduleOptions& chosen, std::int64_t devices) {
  const bool greedy = is_made_for_costs(chosen);
  const auto only_greedy = [&](const char* key, bool given) {
    require(!given || greedy,
            std::string("schedule.") + key +
                " applies to schedules made for given costs: use schedule.name = \"greedy\", or "
                "leave it out");
  };
  const std::size_t stages = devices * chosen.chunks;
  for (const auto& [key, times] : {std::pair("forward", &chosen.forward), std::pair("input", &chosen.input),
                                   std::pair("weight", &chosen.weight)}) {
    only_greedy(key, !times->empty());
    require(times->empty() == chosen.forward.empty(),
            "schedule.forward, schedule.input and schedule.weight: give all three, or none");
    require(times->size() <= 1 || times->size() == stages,
            std::string("schedule.") + key + " has " + std::to_string(times->size()) +
                " times; expected one, or one for each of " + std::to_string(stages) + " stages");
  }
  only_greedy("transfer", chosen.transfer != 0);
  require(chosen.transfer == 0 || !chosen.forward.empty(),
          "schedule.transfer = " + exact_number(chosen.transfer) +
              " needs schedule.forward, schedule.input and schedule.weight");
  only_greedy("in_flight", chosen.in_flight != 0);
  require(chosen.in_flight == 0 || chosen.in_flight >= 1,
          "schedule.in_flight = " + exact_number(chosen.in_flight) +
              ": a device holds at least one micro-batch; use 1 or more, or 0 for automatic");
}

}  // namespace

void take_config_extras(ModelOptions& options, const files::ConfigExtras& extras, Tokenizer tokenizer) {
  if (options.positions == 0) options.positions = extras.positions;
  if (tokenizer == Tokenizer::Bytes) return;
  if (options.begin_token < 0) options.begin_token = extras.begin_token.value_or(-1);
  if (options.end_tokens.empty()) options.end_tokens = extras.end_tokens;
  if (options.padding_token < 0) options.padding_token = extras.padding_token.value_or(-1);
}

Tokenizer tokenizer_of(const DataOptions& data) {
  return data.text.empty() ? Tokenizer::OfModel : Tokenizer::Bytes;
}

void settle_model(Options& options) {
  model::Shape& shape = options.model.shape;
  if (!options.model.config.empty()) {
    require_no_shape_keys(options);
    on_behalf_of("model.config", [&] {
      shape = files::read_model_config(options.model.config);
      take_config_extras(options.model, files::read_config_extras(options.model.config),
                         tokenizer_of(options.data));
    });
    options.model.config.clear();  // the resolved file contains its keys
  }
  const std::int64_t width = options.model.moe_ffn;
  require(width == 0 || shape.experts > 1, "model.moe_ffn = " + std::to_string(width) +
                                               " needs model.experts above 1; a dense model has model.ffn");
  require(shape.shared_ffn == 0 || options.model.shared_experts == 0,
          "moe.shared_ffn = " + std::to_string(shape.shared_ffn) + " and moe.shared_experts = " +
              std::to_string(options.model.shared_experts) + " are both given; keep one");
  const bool bytes = options.data.megatron.empty() || !options.data.text.empty();  // both: refused below
  require(bytes || shape.vocab > 0, "model.vocab is missing; data.megatron does not give it");
  shape = shape_of(options.model);
  options.model.moe_ffn = options.model.shared_experts = 0;  // the resolved file has widths
  model::validate(shape);
  const model::RopeScaling &scaling = shape.rope_scaling, none;
  require(scaling.factor != 1 || (scaling.low_frequency_factor == none.low_frequency_factor &&
                                  scaling.high_frequency_factor == none.high_frequency_factor &&
                                  scaling.original_positions == none.original_positions),
          "model.rope_low_frequency_factor, rope_high_frequency_factor and rope_original_positions need "
          "model.rope_factor above 1");
  require(
      scaling.factor == 1 || scaling.high_frequency_factor > scaling.low_frequency_factor,
      "model.rope_high_frequency_factor = " + exact_number(scaling.high_frequency_factor) +
          " must be above model.rope_low_frequency_factor = " + exact_number(scaling.low_frequency_factor));
}

model::Shape shape_of(const ModelOptions& options) {
  model::Shape shape = options.shape;
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (options.moe_ffn > 0) shape.ffn = options.moe_ffn;  // every layer has experts
  if (options.shared_experts > 0) shape.shared_ffn = options.shared_experts * shape.ffn;
  if (shape.vocab == 0) shape.vocab = files::kByteVocabulary;
  return shape;
}

mesh::Mesh mesh_of(const Options& options) {
  const ParallelOptions& parallel = options.parallel;
  return {.tensor = static_cast<int>(parallel.tp),
          .context = static_cast<int>(parallel.cp),
          .expert = static_cast<int>(parallel.ep),
          .data = static_cast<int>(parallel.dp),
          .pipeline = static_cast<int>(parallel.pp)};
}

bool is_made_for_costs(const ScheduleOptions& chosen) {
  const auto generators = schedule::generators();
  const auto generator = std::ranges::find(generators, chosen.name, &schedule::Generator::name);
  return chosen.file.empty() && generator != generators.end() && generator->made_for_costs;
}

void settle(Options& options) {
  fit_replicas(options, {});
  settle_model(options);
  settle_mesh(options);
  check_byte_vocabulary(options);
  check_training(options);
  settle_slice_tokens(options);
  if (options.schedule.file.empty()) choose_generator(options);
  require(options.schedule.slice_tokens == 0 || options.schedule.chunks == 1,
          "schedule.slice_tokens = " + std::to_string(options.schedule.slice_tokens) +
              " makes micro-batches of few slices, and schedule.chunks = " +
              std::to_string(options.schedule.chunks) + " needs whole groups of them: use chunks = 1");
  check_costs(options.schedule, options.parallel.pp);
}

}  // namespace penstock::run
