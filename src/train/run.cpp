// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <ATen/Parallel.h>

#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>

#include "base/error.h"
#include "files/atomic_file.h"
#include "files/event_file.h"
#include "files/file_system.h"
#include "train/bigram.h"
#include "train/checkpoint_load.h"
#include "train/checkpoint_saver.h"
#include "train/checkpoint_settings.h"
#include "train/gather_events.h"
#include "train/initial_weights.h"
#include "train/machine.h"
#include "train/resident.h"
#include "train/trainer.h"
#include "train/weights_file.h"

namespace penstock::train {
namespace {

constexpr std::size_t kKeptTimelines = 3;
constexpr int kMostSkippedInARow = 3;

// What this rank keeps of one of the last steps.
struct KeptStep {
  std::int64_t number = 0;
  std::vector<schedule::Event> events;
  std::vector<schedule::HelpSpan> help;
  std::vector<OpMemory> memory;
  std::vector<Seconds> processor_seconds;
  std::vector<nn::KernelCall> calls;
};

// One run under way. Every rank goes through the same calls; what only rank 0 does hangs on its directory.
class Run {
 public:
  Run(const RunPlan& plan, const TokenData& data, comm::Communicator& pipeline, const RunDirectory* directory,
      const RunObserver& observer, const RunControl& control)
      : plan_(plan),
        data_(data),
        pipeline_(pipeline),
        directory_(directory),
        observer_(observer),
        control_(control),
        trainer_(plan, pipeline),
        resident_(trainer_.ledger(), pipeline) {
    if (control_.resumed) {
      go_on_from(*control_.resumed);
    } else if (!plan.options.model.weights.empty()) {
      begin_with(files::ModelWeights(plan.options.model.weights));
    }
    saver_.emplace(checkpoints_of(plan), plan.options.train.keep_checkpoints, done_, plan.shape(), trainer_,
                   pipeline);
    if (directory_) {
      metrics_.emplace(directory_->metrics(), done_);
      curves_.emplace(directory_->path(), done_);
    }
    machine_flops_ = measure_matmul_rate(plan.precision());
    pipeline_.all_reduce(&machine_flops_, 1, comm::Type::F64, comm::Reduction::Sum);
    if (directory_ && data_.is_text() && data_.evaluation_batches() > 0)
      summary_.bigram_loss = bigram_loss(data_);
  }

  RunOutcome carry_out() {
    began_ = Clock::now();
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
  using Clock = std::chrono::steady_clock;

  std::int64_t steps() const { return plan_.options.train.steps; }
  Tokens tokens_per_step() const { return plan_.options.train.batch * plan_.options.data.seq_len; }
  Seconds elapsed() const { return std::chrono::duration<Seconds>(Clock::now() - began_).count(); }
  Flops model_flops(double tokens_per_second) const {
    return tokens_per_second * model::flops_per_token(plan_.shape(), plan_.options.data.seq_len);
  }

  void begin_with(const files::ModelWeights& weights) {
    load_weights(weights, trainer_.parameters());
    trainer_.weights_from_masters();
  }

  void go_on_from(const CheckpointFacts& facts) {
    load_checkpoint(checkpoints_of(plan_).of_step(facts.step), facts, trainer_);
    done_ = facts.step;
    samples_drawn_ = facts.samples_drawn;
    skipped_in_a_row_ = facts.skipped_in_a_row;
    summary_.resumed_from_step = facts.step;
    summary_.skipped_steps = facts.skipped_steps;
    summary_.loss = facts.loss.value_or(std::nan(""));
    summary_.evaluation_loss = facts.evaluation_loss;
  }

  CheckpointFacts facts() {
    return {.step = done_,
            .samples_drawn = samples_drawn_,
            .samples_per_epoch = data_.samples(),
            .updates = trainer_.optimizer().updates(),
            .skipped_steps = summary_.skipped_steps,
            .skipped_in_a_row = skipped_in_a_row_,
            .loss = summary_.loss,
            .evaluation_loss = summary_.evaluation_loss,
            .settings = settings_of(plan_, at::get_num_threads())};
  }

  StepReport one_step(std::int64_t number) {
    const StepTokens tokens = data_.training_batch(samples_drawn_);
    samples_drawn_ += plan_.options.train.batch;
    const StepReport report = trainer_.step(number, tokens);
    kept_.push_back({number, trainer_.events(), trainer_.help(), trainer_.memory(),
                     trainer_.processor_seconds(), trainer_.kernel_calls()});
    if (kept_.size() > kKeptTimelines) kept_.pop_front();
    watch_for_numbers(number, report);
    const bool evaluate_now = number == steps() || (plan_.options.train.evaluate_every > 0 &&
                                                    number % plan_.options.train.evaluate_every == 0);
    std::optional<double> evaluation;
    if (evaluate_now && data_.evaluation_batches() > 0) evaluation = evaluate();
    if (directory_) note(number, report, evaluation);
    return report;
  }

  // Between two steps: checkpoints go on and begin, and all ranks agree on whether this was the last step.
  void keep_up(const StepReport& report) {
    const bool asked = control_.stop_asked && control_.stop_asked();
    std::error_code error;
    const bool file = directory_ && std::filesystem::exists(directory_->stop_request(), error);
    std::array<std::int64_t, 2> facts{asked || file ? 1 : 0, saver_->busy() ? 1 : 0};
    pipeline_.all_reduce(facts.data(), facts.size(), comm::Type::I64, comm::Reduction::Max);
    const auto [stop, busy] = facts;
    if (busy == 0) saver_->proceed();
    stopped_ = stop != 0 && done_ < steps();
    if (checkpoint_is_due(report)) save();
  }

  // None while steps are being skipped: the one before the trouble stays the newest.
  bool checkpoint_is_due(const StepReport& report) const {
    const std::int64_t every = plan_.options.train.checkpoint_every;
    if (every == 0) return false;
    return stopped_ || done_ == steps() || (done_ % every == 0 && !report.skipped);
  }

  void save() {
    if (metrics_) metrics_->flush();
    saver_->begin(facts());
  }

  std::string newest_checkpoint() const {
    return saver_->newest() > 0 ? checkpoints_of(plan_).of_step(saver_->newest()) : std::string();
  }

  void watch_for_numbers(std::int64_t number, const StepReport& report) {
    skipped_in_a_row_ = report.skipped ? skipped_in_a_row_ + 1 : 0;
    if (!report.skipped) return;
    ++summary_.skipped_steps;
    if (directory_) {
      observer_.say("step " + std::to_string(number) +
                    ": the loss or the gradient is not finite; the step is skipped");
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
      const StepTokens batch = data_.evaluation_batch(index);
      sum += trainer_.evaluate(batch) * static_cast<double>(batch.target_count);
      targets += static_cast<double>(batch.target_count);
    }
    return sum / targets;
  }

  void note(std::int64_t number, const StepReport& report, std::optional<double> evaluation) {
    const double rate = static_cast<double>(tokens_per_step()) / report.seconds;
    const StepMetrics metrics{.step = number,
                              .loss = report.loss,
                              .grad_norm = report.grad_norm,
                              .lr = report.lr,
                              .tokens = samples_drawn_ * plan_.options.data.seq_len,
                              .step_s = report.seconds,
                              .tokens_per_second = rate,
                              .mfu = model_flops(rate) / machine_flops_,
                              .bubble_fraction = report.bubble_fraction,
                              .peak_bytes = report.peak_bytes,
                              .copy_hidden = report.copy_hidden,
                              .skipped = report.skipped,
                              .evaluation_loss = evaluation};
    metrics_->write(metrics);
    curves_->write(number, curves_of(metrics));
    if (evaluation) summary_.evaluation_loss = evaluation;
    summary_.loss = report.loss;
    summary_.copy_hidden = report.copy_hidden;
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
    for (const KeptStep& kept : kept_) {
      outcome.timelines.push_back(
          {kept.number, gather_events(plan_.program, kept.events, kept.help, pipeline_),
           gather_memory(plan_.program, kept.memory, pipeline_),
           gather_processor_seconds(plan_.program, kept.processor_seconds, pipeline_)});
      if (plan_.profile) outcome.profiles.push_back(gather_profile(kept.number, kept.calls, pipeline_));
    }
    summary_.processes = resident_.gather(plan_.predicted, saver_->copy_bytes());
    const auto measured = gather_peaks(trainer_.ledger(), away(), pipeline_);
    const std::string path = directory_ ? directory_->file("weights.safetensors") : "";
    write_weights(path, plan_.shape(), trainer_.parameters(), pipeline_);
    if (!directory_) return {};
    summarise(measured);
    files::write_atomically(directory_->summary(), to_json(summary_) + "\n");
    outcome.summary = summary_;
    outcome.weights_file = path;
    return outcome;
  }

  // Bytes of this rank's records in the host's memory and on disk, at most.
  AwayBytes away() const {
    const Bytes bytes = trainer_.copies().away_peak;
    return plan_.options.memory.offload_to == "disk" ? AwayBytes{.disk = bytes} : AwayBytes{.host = bytes};
  }

  void summarise(const std::vector<BytesByCategory>& measured) {
    summary_.steps = steps();
    summary_.tokens = samples_drawn_ * plan_.options.data.seq_len;
    const Tokens since = (steps() - summary_.resumed_from_step) * tokens_per_step();
    summary_.tokens_per_second = static_cast<double>(since) / summary_.wall_s;
    summary_.mfu = model_flops(summary_.tokens_per_second) / machine_flops_;
    const Machine machine = this_machine();
    summary_.machine = machine.processor + ", " + machine.instructions;
    for (std::size_t device = 0; device < measured.size(); ++device) {
      summary_.devices.push_back({predicted_bytes(plan_.predicted[device]), measured[device]});
    }
  }

  const RunPlan& plan_;
  const TokenData& data_;
  comm::Communicator& pipeline_;
  const RunDirectory* directory_;
  const RunObserver& observer_;
  const RunControl& control_;
  Trainer trainer_;
  ResidentAccount resident_;
  std::optional<CheckpointSaver> saver_;
  std::optional<MetricsFile> metrics_;
  std::optional<files::EventFile> curves_;  // for TensorBoard
  Flops machine_flops_ = 0;
  Clock::time_point began_;
  std::int64_t done_ = 0;  // steps
  std::int64_t samples_drawn_ = 0;
  std::int64_t skipped_in_a_row_ = 0;
  bool stopped_ = false;
  std::deque<KeptStep> kept_;
  Summary summary_;
};

}  // namespace

RunOutcome run(const RunPlan& plan, const TokenData& data, comm::Communicator& pipeline,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control) {
  return Run(plan, data, pipeline, directory, observer, control).carry_out();
}

CheckpointDirectory checkpoints_of(const RunPlan& plan) {
  return CheckpointDirectory((std::filesystem::path(plan.options.output.dir) / "checkpoints").string());
}

}  // namespace penstock::train
