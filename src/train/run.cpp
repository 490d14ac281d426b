// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <deque>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "files/atomic_file.h"
#include "files/event_file.h"
#include "files/file_system.h"
#include "files/run_files.h"
#include "run/step_plan.h"
#include "train/checkpoint/load.h"
#include "train/checkpoint/saver.h"
#include "train/checkpoint/settings.h"
#include "train/checkpoint/weights_file.h"
#include "train/data/bigram.h"
#include "train/machine.h"
#include "train/record/gather_events.h"
#include "train/record/resident.h"
#include "train/step/trainer.h"

namespace penstock::train {
namespace {

constexpr std::size_t kKeptTimelines = 3;
constexpr int kMostSkippedInARow = 3;

// This rank's records of one of the last steps.
struct KeptStep {
  std::int64_t number = 0;
  std::vector<schedule::Event> events;
  std::vector<schedule::ExchangeSpan> exchanges;
  std::vector<OpMemory> memory;
  std::vector<Seconds> processor_seconds;
  std::vector<nn::KernelCall> calls;
};

// One run in progress. Every rank makes the same calls; only rank 0 has a directory, for its extra work.
class Run {
 public:
  Run(const run::Run& run, const TokenData& data, comm::Communicator& world, const RunDirectory* directory,
      const RunObserver& observer, const RunControl& control)
      : run_(run),
        data_(data),
        world_(world),
        directory_(directory),
        observer_(observer),
        control_(control),
        part_{run.mesh.coordinates_of(world.rank()).data, run.mesh.data},
        trainer_(run, world, control.profile, control.recorder),
        resident_(trainer_.ledger(), world) {
    if (control_.resumed) {
      go_on_from(*control_.resumed);
    } else if (!run.options.model.weights.empty()) {
      begin_with(files::ModelWeights(run.options.model.weights));
    }
    saver_.emplace(checkpoints_of(run), run.options.train.keep_checkpoints, done_, run.shape(), trainer_,
                   world);
    if (directory_) {
      metrics_.emplace(directory_->metrics(), done_);
      curves_.emplace(directory_->path(), done_);
    }
    machine_flops_ = measure_matmul_rate(run.precision);
    world_->all_reduce(&machine_flops_, 1, comm::Type::F64, comm::Reduction::Sum);
    if (directory_ && data_.is_text() && data_.evaluation_batches() > 0)
      summary_.bigram_loss = bigram_loss(data_);
  }

  RunOutcome carry_out() {
    began_ = steady_seconds();
    while (done_ < steps() && !stopped_) {
      const StepReport report = one_step(done_ + 1);
      resident_.note_step(away().host);
      ++done_;
      keep_up(report);
    }
    summary_.wall_s = elapsed();
    saver_->settle();
    return stopped_ ? end_early() : finish();
  }

 private:
  std::int64_t steps() const { return run_.options.train.steps; }
  Seconds elapsed() const { return steady_seconds() - began_; }
  Flops model_flops(double tokens_per_second) const {
    return tokens_per_second * model::flops_per_token(run_.shape(), run_.options.data.seq_len);
  }

  void begin_with(const files::ModelWeights& weights) {
    load_weights(weights, trainer_.parameters());
    trainer_.weights_from_masters();
  }

  void go_on_from(const CheckpointFacts& facts) {
    load_checkpoint(checkpoints_of(run_).of_step(facts.step), facts, trainer_);
    done_ = facts.step;
    samples_drawn_ = facts.samples_drawn;
    tokens_ = tokens_before_ = facts.tokens.value_or(samples_drawn_ * run_.options.data.seq_len);
    skipped_in_a_row_ = facts.skipped_in_a_row;
    summary_.resumed_from_step = facts.step;
    summary_.skipped_steps = facts.skipped_steps;
    summary_.loss = facts.loss.value_or(std::nan(""));
    summary_.evaluation_loss = facts.evaluation_loss;
  }

  CheckpointFacts facts() {
    return {.step = done_,
            .samples_drawn = samples_drawn_,
            .tokens = tokens_,
            .samples_per_epoch = data_.samples(),
            .updates = trainer_.optimizer().updates(),
            .skipped_steps = summary_.skipped_steps,
            .skipped_in_a_row = skipped_in_a_row_,
            .loss = summary_.loss,
            .evaluation_loss = summary_.evaluation_loss,
            .settings = settings_of(run_, at::get_num_threads())};
  }

  StepReport one_step(std::int64_t number) {
    if (control_.recorder) control_.recorder->begin_step(number);
    const StepTokens tokens = data_.training_batch(samples_drawn_, part_);
    samples_drawn_ += run_.options.train.batch;
    tokens_ += tokens.token_count;
    const StepReport report = trainer_.step(number, tokens);
    kept_.push_back({number, trainer_.events(), trainer_.exchanges(), trainer_.memory(),
                     trainer_.processor_seconds(), trainer_.kernel_calls()});
    // A directory has the documents of one step.
    if (kept_.size() > (report.documents ? 1 : kKeptTimelines)) kept_.pop_front();
    watch_for_numbers(number, report);
    const bool evaluate_now = number == steps() || (run_.options.train.evaluate_every > 0 &&
                                                    number % run_.options.train.evaluate_every == 0);
    std::optional<double> evaluation;
    if (evaluate_now && data_.evaluation_batches() > 0) evaluation = evaluate();
    if (directory_) note(number, report, tokens.token_count, evaluation);
    return report;
  }

  // Between two steps: checkpoints advance and start, and all ranks agree on whether this was the last step.
  void keep_up(const StepReport& report) {
    if (control_.recorder) control_.recorder->enter("the end of a step, or a checkpoint");
    const bool asked = control_.stop_asked && control_.stop_asked();
    std::error_code error;
    const bool file = directory_ && std::filesystem::exists(directory_->stop_request(), error);
    std::array<std::int64_t, 2> facts{asked || file ? 1 : 0, saver_->busy() ? 1 : 0};
    comm::as_part_of("the end of a step", [&] {
      world_->all_reduce(facts.data(), facts.size(), comm::Type::I64, comm::Reduction::Max);
    });
    const auto [stop, busy] = facts;
    if (busy == 0) saver_->proceed();
    stopped_ = stop != 0 && done_ < steps();
    if (checkpoint_is_due(report)) save();
  }

  // None while steps are being skipped: the last good one stays the newest.
  bool checkpoint_is_due(const StepReport& report) const {
    const std::int64_t every = run_.options.train.checkpoint_every;
    if (every == 0) return false;
    return stopped_ || done_ == steps() || (done_ % every == 0 && !report.skipped);
  }

  void save() {
    if (metrics_) metrics_->flush();
    saver_->begin(facts());
  }

  std::string newest_checkpoint() const {
    return saver_->newest() > 0 ? checkpoints_of(run_).of_step(saver_->newest()) : std::string();
  }

  void watch_for_numbers(std::int64_t number, const StepReport& report) {
    if (!report.without_targets) skipped_in_a_row_ = report.skipped ? skipped_in_a_row_ + 1 : 0;
    if (!report.skipped) return;
    ++summary_.skipped_steps;
    if (directory_) {
      const char* reason = report.without_targets ? "no token of the batch has a target"
                                                  : "the loss or the gradient is not finite";
      observer_.say("step " + std::to_string(number) + ": " + reason + "; the step is skipped");
    }
    if (skipped_in_a_row_ >= kMostSkippedInARow) give_up(number);
  }

  [[noreturn]] void give_up(std::int64_t number) {
    saver_->settle();
    const std::string good = newest_checkpoint();
    throw RunError(
        "three steps in a row had a loss or gradient that is not finite, the last one step " +
        std::to_string(number) + "; a smaller train.lr may help; " +
        (good.empty() ? "no checkpoint was written before" : "the last good checkpoint is " + good));
  }

  double evaluate() {
    double sum = 0;
    double targets = 0;
    for (std::int64_t index = 0; index < data_.evaluation_batches(); ++index) {
      const StepTokens batch = data_.evaluation_batch(index, part_);
      sum += trainer_.evaluate(batch) * static_cast<double>(batch.target_count);
      targets += static_cast<double>(batch.target_count);
    }
    return sum / std::max(targets, 1.0);
  }

  void note(std::int64_t number, const StepReport& report, Tokens tokens, std::optional<double> evaluation) {
    const double rate = static_cast<double>(tokens) / report.seconds;
    const StepMetrics metrics{.step = number,
                              .loss = report.loss,
                              .grad_norm = report.grad_norm,
                              .lr = report.lr,
                              .tokens = tokens_,
                              .step_s = report.seconds,
                              .tokens_per_second = rate,
                              .mfu = model_flops(rate) / machine_flops_,
                              .bubble_fraction = report.bubble_fraction,
                              .peak_bytes = report.peak_bytes,
                              .copy_hidden = report.copy_hidden,
                              .collective_hidden = report.collective_hidden,
                              .tensor = report.tensor,
                              .context = report.context,
                              .expert = report.expert,
                              .load = report.load,
                              .documents = report.documents,
                              .skipped = report.skipped,
                              .evaluation_loss = evaluation};
    metrics_->write(metrics);
    curves_->write(number, curves_of(metrics));
    if (evaluation) summary_.evaluation_loss = evaluation;
    summary_.loss = report.loss;
    summary_.copy_hidden = report.copy_hidden;
    summary_.collective_hidden = report.collective_hidden;
    summary_.tensor = report.tensor;
    summary_.context = report.context;
    summary_.expert = report.expert;
    summary_.step_s = report.seconds;
    observer_.progress({.step = number,
                        .steps = steps(),
                        .loss = report.loss,
                        .evaluation_loss = summary_.evaluation_loss,
                        .tokens_per_second = rate,
                        .model_flops = model_flops(rate),
                        .machine_flops = machine_flops_,
                        .remaining = -1});
  }

  RunOutcome end_early() {
    if (!directory_) return {};
    files::file_system().remove(directory_->stop_request());
    return {.stopped = true,
            .steps = done_,
            .checkpoint = saver_->newest() == done_ ? newest_checkpoint() : std::string()};
  }

  RunOutcome finish() {
    RunOutcome outcome{.steps = done_};
    const comm::Pipeline pipeline = trainer_.pipeline();
    const schedule::Program& program = trainer_.plan().program;
    if (run::is_planned_by_step(run_)) outcome.program = program;
    if (!trainer_.content().documents.empty()) outcome.documents = {done_, trainer_.content()};
    for (const KeptStep& kept : kept_) {
      outcome.timelines.push_back({kept.number, gather_events(program, kept.events, kept.exchanges, pipeline),
                                   gather_memory(program, kept.memory, pipeline),
                                   gather_processor_seconds(program, kept.processor_seconds, pipeline),
                                   gather_rank_events(program, kept.events, run_.mesh, world_)});
      if (control_.profile) outcome.profiles.push_back(gather_profile(kept.number, kept.calls, pipeline));
    }
    summary_.processes = resident_.gather(run_, saver_->copy_bytes());
    const auto measured = gather_peaks(run_.mesh, trainer_.ledger(), away(), world_);
    const std::string path = (std::filesystem::path(run_.options.output.dir) / files::kWeights).string();
    write_weights(path, run_.shape(), trainer_.parameters(), world_);
    if (!directory_) return {};
    summarise(measured);
    files::write_atomically(directory_->summary(), to_json(summary_) + "\n");
    outcome.summary = summary_;
    outcome.weights_file = path;
    return outcome;
  }

  // Peak bytes of this rank's records in host memory and on disk.
  AwayBytes away() const {
    const Bytes bytes = trainer_.copies().away_peak;
    return run_.offload_to == run::OffloadTo::Disk ? AwayBytes{.disk = bytes} : AwayBytes{.host = bytes};
  }

  void summarise(const std::vector<BytesByCategory>& measured) {
    summary_.steps = steps();
    summary_.tokens = tokens_;
    summary_.tokens_per_second = static_cast<double>(tokens_ - tokens_before_) / summary_.wall_s;
    summary_.mfu = model_flops(summary_.tokens_per_second) / machine_flops_;
    const Host machine = this_host();
    summary_.machine = machine.processor + ", " + machine.instructions;
    for (std::size_t device = 0; device < measured.size(); ++device) {
      summary_.devices.push_back({predicted_bytes(run_.predicted[device]), measured[device]});
    }
  }

  const run::Run& run_;
  const TokenData& data_;
  comm::World world_;
  const RunDirectory* directory_;
  const RunObserver& observer_;
  const RunControl& control_;
  const TokenData::Part part_;
  Trainer trainer_;
  ResidentAccount resident_;
  std::optional<CheckpointSaver> saver_;
  std::optional<MetricsFile> metrics_;
  std::optional<files::EventFile> curves_;  // for TensorBoard
  Flops machine_flops_ = 0;
  Seconds began_ = 0;
  std::int64_t done_ = 0;  // steps
  std::int64_t samples_drawn_ = 0;
  Tokens tokens_ = 0, tokens_before_ = 0;  // without padding; before a resume
  std::int64_t skipped_in_a_row_ = 0;
  bool stopped_ = false;
  std::deque<KeptStep> kept_;
  Summary summary_;
};

}  // namespace

RunOutcome run(const run::Run& run, const TokenData& data, comm::Communicator& world,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control) {
  return Run(run, data, world, directory, observer, control).carry_out();
}

CheckpointDirectory checkpoints_in(const std::string& output_directory) {
  return CheckpointDirectory((std::filesystem::path(output_directory) / files::kCheckpoints).string());
}

CheckpointDirectory checkpoints_of(const run::Run& run) { return checkpoints_in(run.options.output.dir); }

}  // namespace penstock::train
