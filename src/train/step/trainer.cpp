// SPDX-License-Identifier: Apache-2.0
#include "train/step/trainer.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cmath>

#include "backend/memory.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/mpi.h"
#include "comm/polling.h"
#include "nn/stage_parameters.h"
#include "run/costs.h"
#include "run/lowering.h"
#include "run/replicas.h"
#include "schedule/exchange/time.h"
#include "train/step/device_memory.h"
#include "train/step/gather_load.h"
#include "train/step/tensor_copies.h"

namespace penstock::train {
namespace {

std::map<int, nn::Stage> make_stages(const run::Run& run, int device, const mesh::StateSharding& sharding,
                                     const nn::ExpertOptions& experts, LayerGroups& groups) {
  const bool sharded = run.sharded_vocabulary();
  const auto rotary = nn::rotary_table(run.shape(), run.options.data.seq_len, run.precision);
  std::map<int, nn::Stage> stages;
  for (int number = 0; number < run.stages(); ++number) {
    if (run.device_of_stage[number] != device) continue;
    const auto [first, count] = run.layers[number];
    const auto keep = run.keep.begin() + first;
    stages.emplace(number, nn::Stage({.shape = run.shape(),
                                      .layers = {first, count},
                                      .first = number == 0 && !sharded,
                                      .last = number + 1 == run.stages() && !sharded,
                                      .precision = run.precision,
                                      .seed = static_cast<std::uint64_t>(run.options.train.seed),
                                      .loss_tile_tokens = run.options.train.loss_tile_tokens,
                                      .rotary = rotary,
                                      .keep = {keep, keep + count},
                                      .states = {sharding, run.shards_weights()},
                                      .experts = experts,
                                      .group = &groups.tensor(),
                                      .context = &groups.context()}));
  }
  return stages;
}

bool meets_copies(const schedule::DeviceProgram& list) {
  return std::ranges::any_of(list.ops,
                             [](const schedule::Op& op) { return op.kind == schedule::OpKind::Offload; });
}

// `rank`: of the world.
std::unique_ptr<OffloadStore> make_store(const run::Run& run, int rank, Bytes size) {
  if (run.offload_to == run::OffloadTo::Host) return host_store(size);
  const std::string& directory = run.options.memory.offload_dir;
  return disk_store(directory.empty() ? run.options.output.dir : directory, rank, size);
}

nn::VocabularyOptions vocabulary_options(const run::Run& run, comm::Pipeline pipeline,
                                         const mesh::StateSharding& sharding, nn::TensorGroup& group) {
  return {.shape = run.shape(),
          .precision = run.precision,
          .seed = static_cast<std::uint64_t>(run.options.train.seed),
          .device = pipeline->rank(),
          .devices = pipeline->size(),
          .group = &group,
          .loss_tile_tokens = run.options.train.loss_tile_tokens,
          .sharding = sharding};
}

mesh::StateSharding sharding_at(const run::Run& run, int rank) {
  return run::state_sharding_of(run, run.mesh.coordinates_of(rank));
}

comm::ShardingRanks sharding_ranks(const run::Run& run) {
  const bool experts = run.shape().experts > 1;
  return {.dense = run::state_sharding_of(run, {}).shards,
          .experts = experts ? run::expert_sharding_of(run, {}).shards : 0};
}

}  // namespace

Trainer::Trainer(const run::Run& run, comm::Communicator& world, bool profile, FlightRecorder* recorder)
    : run_(run),
      evaluation_(run::evaluation_of(run)),
      profiles_(profile),
      recorder_(recorder),
      groups_(comm::make_groups(world, run.mesh, sharding_ranks(run))),
      layer_groups_(run, groups_, [this] { return advance(); }) {
  backend::take_turn(comm::place_on_machine(world.rank()));
  backend::install_allocator();
  comm::connect_gpus(groups_);
  const backend::LedgerScope counted(ledger_);
  within_device_memory(run, ledger_, [this] { make_states(); });
  ledger_.reset_peaks();  // exclude the creation of parameters
  within_device_memory(run, ledger_, [this] { make_step_parts(); });
  evaluating_ = make_interpreter(evaluation_, run::cuts_of(run.options, evaluation_.slices), Mode::Evaluate);
  made_ = true;
}

void Trainer::make_states() {
  const mesh::StateSharding sharding = sharding_at(run_, groups_.world->rank());
  stages_ = make_stages(run_, groups_.pipeline->rank(), sharding, expert_options(), layer_groups_);
  if (run_.sharded_vocabulary())
    vocabulary_.emplace(vocabulary_options(run_, groups_.pipeline, sharding, layer_groups_.tensor()));
  {
    const backend::CategoryScope moments(model::Category::Optimizer);
    optimizer_ = std::make_unique<Optimizer>(parameters(), run_.options.train);
  }
  prepare_replicas();
}

// Plans the step for its documents.
void Trainer::plan_for(const StepTokens& tokens) {
  const Seconds began = steady_seconds();
  content_ = content_of(tokens);
  if (run::is_planned_by_step(run_)) {
    training_.reset();  // they use the previous plan
    exchange_server_.reset();
    offloader_.reset();
    planned_ = run::planned(run_, content_);
    make_step_parts();
  }
  planning_ = steady_seconds() - began;
}

// Creates the parts that run the plan.
void Trainer::make_step_parts() {
  const run::Run& run = plan();
  const int device = groups_.pipeline->rank();
  gradients_->expect(run.program.devices[device]);
  if (const auto& list = run.program.devices[device]; meets_copies(list)) {
    const Bytes size = find_rooms(list).size;
    ensure_room(store_, size, [&] { return make_store(run, groups_.world->rank(), size); });
    offloader_ = std::make_unique<Offloader>(list, *store_);
  }
  exchange_server_ = make_exchange_server();
  training_ = make_interpreter(run.program, run.slices, Mode::Train);
}

// Runs during every wait of this rank: serves other ranks and advances collectives.
bool Trainer::advance() {
  if (!made_) return false;
  const bool moved = replicas_ && replicas_->advance();
  return (exchanging_ && exchange_server_ && exchange_server_->serve()) || moved;
}

nn::ExpertOptions Trainer::expert_options() {
  const run::MoeOptions& moe = run_.options.moe;
  const mesh::Coordinates at = run_.mesh.coordinates_of(groups_.world->rank());
  return {.own = mesh::experts_of(run_.mesh, run_.shape().experts, at),
          .sharding = run::expert_sharding_of(run_, at),
          .group = &layer_groups_.experts(),
          .losses = {.balance = moe.balance_coefficient,
                     .z = moe.z_coefficient,
                     .tokens = run_.options.train.micro_batch * run_.options.data.seq_len,
                     .micro_batches = run_.options.train.batch / run_.options.train.micro_batch,
                     .over_step = moe.balance_over == "step",
                     .sum = [this](std::span<std::int64_t> counts) { layer_groups_.sum_choices(counts); }},
          .forced = {.on = moe.forced_balance || moe.skew > 0, .skew = moe.skew}};
}

Units Trainer::units() {
  const auto addresses = [](std::vector<nn::Parameter>& parameters) {
    std::vector<nn::Parameter*> unit;
    for (nn::Parameter& parameter : parameters) unit.push_back(&parameter);
    return unit;
  };
  const bool sharded_weights = run_.shards_weights();
  Units units;
  for (auto& [number, stage] : stages_) units[number] = {addresses(stage.parameters()), sharded_weights};
  if (vocabulary_) units[schedule::vocabulary_unit(run_.program)] = {addresses(vocabulary_->parameters())};
  return units;
}

void Trainer::prepare_replicas() {
  units_ = units();
  gradients_.emplace(run_, run_.program.devices[groups_.pipeline->rank()], units_);
  if (!groups_.replicas && !groups_.expert_replicas) return;
  replicas_ = std::make_unique<ReplicaLane>(run_, groups_, units_, *gradients_);
  polling_ = comm::make_polling(
      *groups_.pipeline, [this] { return replicas_->advance(); }, run_.options.train.timeout);
}

std::vector<nn::Parameter*> Trainer::parameters() {
  std::vector<nn::Parameter*> parameters;
  for (auto& [number, stage] : stages_) {
    for (nn::Parameter& parameter : stage.parameters()) parameters.push_back(&parameter);
  }
  if (vocabulary_) {
    for (nn::Parameter& parameter : vocabulary_->parameters()) parameters.push_back(&parameter);
  }
  return parameters;
}

void Trainer::weights_from_masters() {
  for (auto& [number, stage] : stages_) stage.weights_from_masters();
  if (vocabulary_) vocabulary_->weights_from_masters();
  if (replicas_) replicas_->forget_weights();
}

StepReport Trainer::step(std::int64_t step, const StepTokens& tokens) {
  const backend::LedgerScope counted(ledger_);
  report_ = {.lr = learning_rate(run_.options.train, step), .without_targets = tokens.target_count == 0};
  targets_ = tokens.target_count;
  comm::as_part_of("the start of a step", [&] { groups_.world->barrier(); });
  profile_.restart();
  layer_groups_.restart();
  const at::AutoDispatchBelowADInplaceOrView explicit_backward;  // no operation records itself for autograd
  const nn::ProfileScope profiled(profiles_ ? &profile_ : nullptr);
  const Seconds began = steady_seconds();
  within_device_memory(run_, ledger_, [&] { plan_for(tokens); });
  exchanging_ = true;
  StepResult result = within_device_memory(plan(), ledger_, [&] { return training_->run(tokens); });
  exchanging_ = false;
  events_ = std::move(result.events);
  exchanges_ = std::move(result.exchanges);
  memory_ = std::move(result.memory);
  processor_seconds_ = std::move(result.processor_seconds);
  layer_groups_.read_waits(result.clock);
  gather_facts(steady_seconds() - began);
  if (!content_.documents.empty())
    report_.documents = gather_document_work(plan(), content_, tokens.padding, planning_, groups_.world);
  return report_;
}

double Trainer::evaluate(const StepTokens& tokens) {
  const backend::LedgerScope counted(ledger_);
  layer_groups_.restart();
  const at::AutoDispatchBelowADInplaceOrView explicit_backward;
  const StepResult result = within_device_memory(run_, ledger_, [&] { return evaluating_->run(tokens); });
  return mean_loss(result.loss_sums, tokens.target_count);
}

// Adds in replica order, which is batch order unless a context group splits the tokens. Each sum is zero on
// all ranks but one, so adding over the ranks changes no bit.
double Trainer::mean_loss(const std::vector<double>& loss_sums, std::int64_t targets) {
  const auto replica =
      static_cast<std::size_t>(mesh::replica_of(run_.mesh, run_.mesh.coordinates_of(groups_.world->rank())));
  std::vector<double> all(loss_sums.size() * static_cast<std::size_t>(run_.mesh.replicas()));
  std::ranges::copy(loss_sums, all.begin() + static_cast<std::ptrdiff_t>(replica * loss_sums.size()));
  comm::as_part_of("the sum of losses", [&] {
    groups_.world->all_reduce(all.data(), all.size(), comm::Type::F64, comm::Reduction::Sum);
  });
  double sum = 0;
  for (const double part : all) sum += part;
  return sum / static_cast<double>(std::max<std::int64_t>(targets, 1));
}

void Trainer::update() {
  if (vocabulary_) vocabulary_->add_tied_gradients();
  sum_tensor_copies(parameters(), layer_groups_.tensor());
  ExactSum::Words squares = optimizer_->square_sums().words();
  comm::as_part_of("the norm of the gradient", [&] {
    groups_.world->all_reduce(squares.data(), squares.size(), comm::Type::I64, comm::Reduction::Sum);
  });
  report_.grad_norm = std::sqrt(ExactSum::of(squares).value());
  report_.skipped =
      report_.without_targets || !std::isfinite(report_.loss) || !std::isfinite(report_.grad_norm);
  if (!report_.skipped)
    optimizer_->update(report_.lr, clip_scale(report_.grad_norm, run_.options.train.clip));
  if (!report_.skipped) weights_from_masters();
  gradients_->clear();
}

// Uses only the backward of layers: forwards at the pipeline's ends include embedding and output layer, whose
// cost relative to layers differs between machines. Whether there is a time is the same on all ranks, though
// their documents differ: they compare their times together.
std::optional<double> Trainer::time_of_work() {
  if (run_.exchange != schedule::ExchangeMode::Off || run_.mesh.expert > 1) return {};
  const int device = groups_.pipeline->rank();
  const auto& list = plan().program.devices[device];
  Seconds taken = 0;
  for (std::size_t op = 0; op < events_.size(); ++op) {
    const schedule::OpKind kind = list.ops[op].kind;
    if (is_backward(kind) || kind == schedule::OpKind::BackwardWeight)
      taken += events_[op].end - events_[op].start - layer_groups_.waited_during(events_[op]);
  }
  if (!work_ || !content_.documents.empty())
    work_ = run::backward_seconds(plan(), content_.documents, device);
  return *work_ > 0 ? std::optional(taken / *work_) : std::nullopt;
}

void Trainer::gather_facts(Seconds seconds) {
  const auto& list = plan().program.devices[groups_.pipeline->rank()];
  const CopyFacts copied = copies();
  away_peak_ = std::max(away_peak_, copied.away_peak);
  const CollectiveFacts moved = replicas_ ? replicas_->facts() : CollectiveFacts{};
  const Seconds busy = schedule::busy_seconds(list, events_, exchanges_);
  const LayerGroups::Traffic traffic = layer_groups_.traffic();
  struct {
    double busy, copying, copy_waiting, moving, move_waiting;
    LayerGroups::OfAxes sent;
  } sum{busy, copied.copying, copied.waiting, moved.busy, moved.waiting, traffic.sent};
  struct {
    double seconds, peak;
    LayerGroups::OfAxes waited;
  } most{seconds, as_double(ledger_.peak_total()), traffic.waited};
  comm::as_part_of("the end of a step", [&] {
    groups_.world->all_reduce(&sum, sizeof sum / sizeof sum.busy, comm::Type::F64, comm::Reduction::Sum);
    groups_.world->all_reduce(&most, sizeof most / sizeof most.peak, comm::Type::F64, comm::Reduction::Max);
  });
  report_.seconds = most.seconds;
  report_.peak_bytes = static_cast<Bytes>(most.peak);
  for (std::size_t axis = 0; axis < kLayerAxes.size(); ++axis) {
    if (mesh::size(run_.mesh, kLayerAxes[axis]) > 1)
      report_.traffic[kLayerAxes[axis]] = {static_cast<Bytes>(sum.sent[axis]), most.waited[axis]};
  }
  if (run_.shape().experts > 1) report_.load = gather_load(run_, stages_, groups_.world);
  if (sum.copying > 0) report_.copy_hidden = std::max(0.0, 1.0 - sum.copy_waiting / sum.copying);
  if (sum.moving > 0) report_.collective_hidden = std::max(0.0, 1.0 - sum.move_waiting / sum.moving);
  report_.bubble_fraction = 1.0 - sum.busy / (static_cast<double>(groups_.world->size()) * report_.seconds);
}

std::unique_ptr<ExchangeServer> Trainer::make_exchange_server() {
  if (plan().program.exchanges.empty()) return nullptr;
  if (!side_) side_.emplace();
  return std::make_unique<ExchangeServer>(plan(), groups_.pipeline, *side_,
                                          [this] { return replicas_ && replicas_->advance(); });
}

std::unique_ptr<Interpreter> Trainer::make_interpreter(const schedule::Program& program, run::Cuts cuts,
                                                       Mode mode) {
  const bool training = mode == Mode::Train, exchanges = training && exchange_server_;
  DeviceParts parts{.stages = stages_,
                    .pipeline = exchanges   ? exchange_server_->pipeline()
                                : replicas_ ? comm::Pipeline(*polling_)
                                            : groups_.pipeline,
                    .tensor = layer_groups_.tensor(),
                    .context = layer_groups_.context(),
                    .vocabulary = vocabulary(),
                    .visitors = layer_groups_.vocabulary(),
                    .offloader = training ? offloader_.get() : nullptr,
                    .exchange = training ? exchange_server_.get() : nullptr,
                    .gradients = training ? &*gradients_ : nullptr,
                    .replicas = replicas_.get(),
                    .meanwhile = [this] { return advance(); },
                    .ledger = &ledger_,
                    .recorder = recorder_,
                    .sum_losses = [this](const auto& sums) { report_.loss = mean_loss(sums, targets_); },
                    .optimizer_step = [this] { update(); }};
  return std::make_unique<Interpreter>(plan(), program, std::move(cuts), mode, std::move(parts));
}

}  // namespace penstock::train
