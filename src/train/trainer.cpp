// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "nn/allocator.h"
#include "nn/stage_parameters.h"
#include "schedule/help_time.h"

namespace penstock::train {
namespace {

std::map<int, nn::Stage> make_stages(const RunPlan& plan, int device) {
  const bool sharded = plan.options.schedule.vocabulary_parallel;
  std::map<int, nn::Stage> stages;
  for (int number = 0; number < plan.stages(); ++number) {
    if (plan.device_of_stage[static_cast<std::size_t>(number)] != device) continue;
    const auto [first, count] = plan.layers[static_cast<std::size_t>(number)];
    const auto keep = plan.keep.begin() + first;
    stages.emplace(number, nn::Stage({.shape = plan.shape(),
                                      .layers = {first, count},
                                      .first = number == 0 && !sharded,
                                      .last = number + 1 == plan.stages() && !sharded,
                                      .precision = plan.precision(),
                                      .seed = static_cast<std::uint64_t>(plan.options.train.seed),
                                      .loss_tile_tokens = plan.options.train.loss_tile_tokens,
                                      .max_positions = plan.options.data.seq_len,
                                      .keep = {keep, keep + count}}));
  }
  return stages;
}

bool has_copies(const schedule::DeviceProgram& list) {
  return std::ranges::any_of(list.ops,
                             [](const schedule::Op& op) { return op.kind == schedule::OpKind::Offload; });
}

std::unique_ptr<Offloader> make_offloader(const RunPlan& plan, int device) {
  const schedule::DeviceProgram& list = plan.program.devices[static_cast<std::size_t>(device)];
  if (!has_copies(list)) return nullptr;
  const schedule::MemoryOptions& memory = plan.options.memory;
  const Bytes size = find_rooms(list).size;
  if (memory.offload_to == "host") return std::make_unique<Offloader>(list, host_store(size));
  const std::string& directory = memory.offload_dir.empty() ? plan.options.output.dir : memory.offload_dir;
  return std::make_unique<Offloader>(list, disk_store(directory, device, size));
}

nn::VocabularyOptions vocabulary_options(const RunPlan& plan, const comm::Communicator& pipeline) {
  return {.shape = plan.shape(),
          .precision = plan.precision(),
          .seed = static_cast<std::uint64_t>(plan.options.train.seed),
          .rank = pipeline.rank(),
          .parts = pipeline.size(),
          .loss_tile_tokens = plan.options.train.loss_tile_tokens};
}

}  // namespace

Trainer::Trainer(const RunPlan& plan, comm::Communicator& pipeline) : plan_(plan), pipeline_(pipeline) {
  nn::install_allocator();
  const nn::LedgerScope counted(ledger_);
  stages_ = make_stages(plan, pipeline.rank());
  if (plan.options.schedule.vocabulary_parallel) vocabulary_.emplace(vocabulary_options(plan, pipeline));
  {
    const nn::CategoryScope moments(nn::Category::Optimizer);
    optimizer_ =
        std::make_unique<Optimizer>(parameters(), model::parameter_names(plan.shape()), plan.options.train);
  }
  offloader_ = make_offloader(plan, pipeline.rank());
  ledger_.reset_peaks();  // what making the parameters took is over
  help_desk_ = make_help_desk();
  training_ = make_interpreter(plan.program, Mode::Train);
  evaluating_ = make_interpreter(plan.evaluation, Mode::Evaluate);
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
}

StepReport Trainer::step(std::int64_t step, const StepTokens& tokens) {
  const nn::LedgerScope counted(ledger_);
  report_ = {.lr = learning_rate(plan_.options.train, step)};
  targets_ = tokens.target_count;
  pipeline_.barrier();
  profile_.restart();
  const nn::ProfileScope profiled(plan_.profile ? &profile_ : nullptr);
  const auto began = std::chrono::steady_clock::now();
  StepResult result = training_->run(tokens);
  events_ = std::move(result.events);
  help_ = std::move(result.help);
  memory_ = std::move(result.memory);
  processor_seconds_ = std::move(result.processor_seconds);
  gather_facts(std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - began).count());
  return report_;
}

double Trainer::evaluate(const StepTokens& tokens) {
  const nn::LedgerScope counted(ledger_);
  return mean_loss(evaluating_->run(tokens).loss_sums, tokens.target_count);
}

// Sums are zero on all ranks but one, so adding them over the ranks changes no bit.
double Trainer::mean_loss(std::vector<double> loss_sums, std::int64_t targets) {
  pipeline_.all_reduce(loss_sums.data(), loss_sums.size(), comm::Type::F64, comm::Reduction::Sum);
  double sum = 0;
  for (const double part : loss_sums) sum += part;
  return sum / static_cast<double>(std::max<std::int64_t>(targets, 1));
}

void Trainer::update(const std::vector<double>& loss_sums) {
  report_.loss = mean_loss(loss_sums, targets_);
  if (vocabulary_) vocabulary_->add_tied_gradients();
  std::vector<double> square_sums = optimizer_->square_sums();
  pipeline_.all_reduce(square_sums.data(), square_sums.size(), comm::Type::F64, comm::Reduction::Sum);
  report_.grad_norm = gradient_norm(square_sums);
  report_.skipped = !std::isfinite(report_.loss) || !std::isfinite(report_.grad_norm);
  if (!report_.skipped)
    optimizer_->update(report_.lr, clip_scale(report_.grad_norm, plan_.options.train.clip));
  if (!report_.skipped) weights_from_masters();
  for (auto& [number, stage] : stages_) stage.zero_gradients();
  if (vocabulary_) vocabulary_->zero_gradients();
}

void Trainer::gather_facts(Seconds seconds) {
  const auto& list = plan_.program.devices[static_cast<std::size_t>(pipeline_.rank())];
  const CopyFacts copied = copies();
  double sums[] = {schedule::busy_seconds(list, events_, help_), copied.copying, copied.waiting};
  double facts[] = {seconds, static_cast<double>(ledger_.peak_total())};
  pipeline_.all_reduce(sums, std::size(sums), comm::Type::F64, comm::Reduction::Sum);
  pipeline_.all_reduce(facts, std::size(facts), comm::Type::F64, comm::Reduction::Max);
  report_.seconds = facts[0];
  report_.peak_bytes = static_cast<Bytes>(facts[1]);
  if (sums[1] > 0) report_.copy_hidden = std::max(0.0, 1.0 - sums[2] / sums[1]);
  report_.bubble_fraction = 1.0 - sums[0] / (static_cast<double>(pipeline_.size()) * report_.seconds);
}

std::unique_ptr<HelpDesk> Trainer::make_help_desk() {
  if (plan_.program.help.empty()) return nullptr;
  const model::Shape& shape = plan_.shape();
  return std::make_unique<HelpDesk>(HelpDesk::Setting{.program = plan_.program,
                                                      .device = pipeline_.rank(),
                                                      .pipeline = pipeline_,
                                                      .slices = plan_.slices,
                                                      .sequences = plan_.options.train.micro_batch,
                                                      .heads = shape.heads,
                                                      .kv_heads = shape.kv_heads,
                                                      .head_dim = shape.head_dim(),
                                                      .type = nn::compute_type(plan_.precision()),
                                                      .timeout = plan_.options.train.timeout});
}

std::unique_ptr<Interpreter> Trainer::make_interpreter(const schedule::Program& program, Mode mode) {
  const bool training = mode == Mode::Train;
  return std::make_unique<Interpreter>(Interpreter::Setting{
      .program = program,
      .device = pipeline_.rank(),
      .stages = stages_,
      .pipeline = training && help_desk_ ? help_desk_->pipeline() : pipeline_,
      .slices = training ? plan_.slices : plan_.evaluation_slices,
      .sequences = plan_.options.train.micro_batch,
      .hidden = plan_.shape().hidden,
      .type = nn::compute_type(plan_.precision()),
      .mode = mode,
      .offloader = training ? offloader_.get() : nullptr,
      .vocabulary = vocabulary(),
      .help = training ? help_desk_.get() : nullptr,
      .optimizer_step = [this](const std::vector<double>& loss_sums) { update(loss_sums); },
      .ledger = &ledger_});
}

}  // namespace penstock::train
