// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "files/event_file.h"
#include "files/file_system.h"
#include "files/run_files.h"
#include "run/step_plan.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/keeper.h"
#include "train/checkpoint/load.h"
#include "train/checkpoint/settings.h"
#include "train/checkpoint/weights_file.h"
#include "train/data/bigram.h"
#include "train/held_out_loss.h"
#include "train/kept_steps.h"
#include "train/machine.h"
#include "train/machine_probe.h"
#include "train/record/gather_events.h"
#include "train/record/rank_times.h"
#include "train/record/resident.h"
#include "train/skipped_steps.h"
#include "train/step/device_memory.h"
#include "train/step/trainer.h"
#include "train/step_metrics.h"

namespace penstock::train {
namespace {

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
        resident_(run, trainer_.ledger(), world),
        rank_times_(world_, control.names.empty() ? comm::names_of_ranks(run.mesh, *world_) : control.names) {
    start_ = StartMetrics{.mesh = mesh_options(run.options.parallel)};
    if (control_.resumed) {
      go_on_from(*control_.resumed);
    } else if (!run.options.model.weights.empty()) {
      begin_with(files::ModelWeights(run.options.model.weights));
    }
    keeper_.emplace(
        run, checkpoints_of(run), control_.resumed ? control_.resumed->checkpoint : 0, trainer_,
        [this] { return facts(); }, world_);
    if (directory_) {
      metrics_.emplace(directory_->metrics(), done_,
                       control_.resumed ? control_.resumed->facts.metrics : std::string());
      for (const std::string& remark : metrics_->remarks()) observer_.say(remark);
      curves_.emplace(directory_->path(), done_);
    }
    const auto measured = [&] { return measure_part_of_rate(run.precision, *world_); };
    machine_flops_ = control.machine_flops > 0 ? control.machine_flops
                                               : within_device_memory(run, trainer_.ledger(), measured);
    world_->all_reduce(&machine_flops_, 1, comm::Type::F64, comm::Reduction::Sum);
  }

  RunOutcome carry_out() {
    if (directory_ && done_ > 0 && done_ < steps()) directory_->forget_end();  // not before: a start may fail
    const Seconds began = steady_seconds();
    resident_.begin(trainer_.pinned_bytes());
    while (done_ < steps() && !stopped_) {
      const DoneStep step = one_step(done_ + 1);
      resident_.note_step(away(trainer_.away_peak()).host + keeper_->copied_bytes());
      ++done_;
      copy_to_hosts(step);
      agree_on_end();  // precedes all reports of the step, so that a reported step has all its copies
      if (directory_) note(step);
      if (skipped_in_a_row_ >= kMostSkippedInARow) give_up(done_);
      if (may_save() && (stopped_ || done_ == steps() || done_ % run_.options.train.checkpoint_every == 0))
        save();
    }
    summary_.wall_s = steady_seconds() - began;
    keeper_->settle();
    if (!stopped_ && may_save() && keeper_->newest() < done_) {
      save();  // it resumed from an in-memory copy of its last step
      keeper_->settle();
    }
    summary_.checkpoint_s += keeper_->take_held_up();
    RunOutcome outcome = stopped_ ? end_early() : finish();
    if (!stopped_ || keeper_->newest() == done_) keeper_->forget_copies();
    return outcome;
  }

 private:
  struct DoneStep {
    std::int64_t number = 0;
    StepReport report;
    Tokens tokens = 0;  // without padding
    std::optional<double> evaluation;
    std::optional<RankTimes> rank_times;
    double time = 0;  // seconds since the epoch when it was done; a start is known by that of its first step
  };

  std::int64_t steps() const { return run_.options.train.steps; }
  // Counts whole sequences, also if documents attend to less (docs/data.md, "Slices of equal work").
  Flops model_flops(double tokens_per_second) const {
    return tokens_per_second * model::flops_per_token(run_.shape(), run_.options.data.seq_len);
  }

  void begin_with(const files::ModelWeights& weights) {
    AllAtWork work(world_);
    load_weights(weights, trainer_.parameters(), [&] { work.still_working(); });
    work.end();
    trainer_.weights_from_masters();
  }

  void go_on_from(const Resumed& resumed) {
    const CheckpointFacts& facts = resumed.facts;
    const Seconds began = steady_seconds();
    AllAtWork work(world_);
    load_state(*resumed.state, facts, trainer_, [&] { work.still_working(); });
    work.end();  // ranks that are threads share the state
    resumed.state->let_go();
    *start_ = {.resumed_from = facts.step, .load_s = steady_seconds() - began, .mesh = start_->mesh};
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
            .content = data_.content().tokens,
            .marks = data_.content().marks,
            .held_out = data_.content().held_out,
            .updates = trainer_.optimizer().updates(),
            .skipped_steps = summary_.skipped_steps,
            .skipped_in_a_row = skipped_in_a_row_,
            .loss = summary_.loss,
            .evaluation_loss = summary_.evaluation_loss,
            .settings = settings_};
  }

  // The copy is made before the step's line is written, so it includes the line.
  void copy_to_hosts(const DoneStep& step) {
    if (!keeper_->copies()) return;
    if (control_.recorder) control_.recorder->enter("a copy to another host's memory");
    if (skipped_in_a_row_ > 0) return keeper_->settle_copies();
    keeper_->copy(done_, [&] {
      CheckpointFacts with_line = facts();
      if (directory_) with_line.metrics = to_json(without_lists(metrics_of(step)));
      return with_line;
    });
  }

  DoneStep one_step(std::int64_t number) {
    if (control_.recorder) control_.recorder->begin_step(number);
    const StepTokens tokens = data_.training_batch(samples_drawn_, part_);
    samples_drawn_ += run_.options.train.batch;
    tokens_ += tokens.token_count;
    const StepReport report = trainer_.step(number, tokens);
    kept_.keep(number, trainer_, report.documents.has_value());
    const std::optional<RankTimes> times = rank_times_.note(trainer_.time_of_work());
    if (times && directory_) {
      for (const std::string& slow : rank_times_.newly_slow(*times))
        observer_.say(slow + "; penstock plan --from " + directory_->path() + " proposes layers for it");
    }
    watch_for_numbers(number, report);
    if (!report.without_targets) summary_.loss = report.loss;
    const bool evaluate_now = number == steps() || (run_.options.train.evaluate_every > 0 &&
                                                    number % run_.options.train.evaluate_every == 0);
    const auto evaluation = evaluate_now && data_.evaluation_batches() > 0 ? evaluate() : std::nullopt;
    if (evaluation) summary_.evaluation_loss = evaluation;
    return {number, report, tokens.token_count, evaluation, times, wall_seconds()};
  }

  // All ranks agree on whether this was the last step; a checkpoint that is being written advances.
  void agree_on_end() {
    if (control_.recorder) control_.recorder->enter("the end of a step, or a checkpoint");
    const bool asked = control_.stop_asked && control_.stop_asked();
    std::error_code error;
    const bool file = directory_ && std::filesystem::exists(directory_->stop_request(), error);
    std::array<std::int64_t, 2> facts{asked || file ? 1 : 0, keeper_->busy() ? 1 : 0};
    comm::as_part_of("the end of a step", [&] {
      world_->all_reduce(facts.data(), facts.size(), comm::Type::I64, comm::Reduction::Max);
    });
    const auto [stop, busy] = facts;
    if (busy == 0) keeper_->proceed();
    stopped_ = stop != 0 && done_ < steps();
  }

  // While numbers are not finite, nothing is saved: the last good checkpoint and copies stay the newest.
  bool may_save() const { return run_.options.train.checkpoint_every > 0 && skipped_in_a_row_ == 0; }

  void save() {
    if (metrics_) metrics_->flush();
    keeper_->save([this] { return facts(); });
  }

  void watch_for_numbers(std::int64_t number, const StepReport& report) {
    if (!report.without_targets) skipped_in_a_row_ = report.skipped ? skipped_in_a_row_ + 1 : 0;
    summary_.skipped_steps += report.skipped;
    if (report.skipped && directory_) observer_.say(line_of_skipped(number, report));
  }

  [[noreturn]] void give_up(std::int64_t number) {
    keeper_->settle();
    const std::string checkpoint = keeper_->newest_checkpoint();
    // A copy may be newer, but it has the weights that led to the failure.
    if (!checkpoint.empty()) keeper_->forget_copies();
    world_->barrier();  // one rank's failure may end the others
    throw RunError(line_of_giving_up(number, checkpoint));
  }

  std::optional<double> evaluate() {
    const std::optional<double> loss = held_out_loss(data_, part_, trainer_);
    if (!loss && directory_ && !std::exchange(told_of_no_targets_, true))
      observer_.say("no evaluated token is a target, so evaluations have no loss");
    return loss;
  }

  StepMetrics metrics_of(const DoneStep& step) const {
    StepMetrics metrics = train::metrics_of(step.report);
    metrics.step = step.number;
    metrics.tokens = tokens_;
    metrics.time = step.time;
    metrics.tokens_per_second = static_cast<double>(step.tokens) / metrics.step_s;
    metrics.mfu = model_flops(metrics.tokens_per_second) / machine_flops_;
    metrics.rank_times = step.rank_times;
    metrics.start = start_;
    metrics.checkpoint = keeper_->newest();
    metrics.evaluation_loss = step.evaluation;
    return metrics;
  }

  void note(const DoneStep& step) {
    StepMetrics metrics = metrics_of(step);
    metrics.checkpoint_s = keeper_->take_held_up();
    start_.reset();
    metrics_->write(metrics);
    if (keeper_->copies()) metrics_->flush_at_times();
    curves_->write(step.number, curves_of(metrics));
    summary_.checkpoint_s += metrics.checkpoint_s;
    take_last_step(summary_, step.report);
    observer_.progress({.step = step.number,
                        .steps = steps(),
                        .loss = summary_.loss,
                        .evaluation_loss = summary_.evaluation_loss,
                        .tokens_per_second = metrics.tokens_per_second,
                        .model_flops = model_flops(metrics.tokens_per_second),
                        .machine_flops = machine_flops_,
                        .remaining = -1});
  }

  RunOutcome end_early() {
    if (!directory_) return {};
    files::file_system().remove(directory_->stop_request());
    return {.stopped = true,
            .steps = done_,
            .checkpoint = keeper_->newest_checkpoint(),
            .checkpoint_step = keeper_->newest()};
  }

  RunOutcome finish() {
    RunOutcome outcome{.steps = done_};
    if (run::is_planned_by_step(run_)) outcome.program = trainer_.plan().program;
    if (!trainer_.content().documents.empty()) outcome.documents = {done_, trainer_.content()};
    outcome.timelines = kept_.timelines(trainer_, run_, world_);
    if (control_.profile) outcome.profiles = kept_.profiles(trainer_);
    if (const auto times = rank_times_.of_run()) summary_.rank_times = times->times;
    summary_.processes = resident_.gather(keeper_->staging_bytes(), keeper_->copied_bytes());
    const auto measured = gather_peaks(run_.mesh, trainer_.ledger(), away(trainer_.away_peak()), world_);
    const std::string path = (std::filesystem::path(run_.options.output.dir) / files::kWeights).string();
    write_weights(path, run_.shape(), trainer_.parameters(), world_, run_.options.output.gather);
    AllAtWork work(world_);
    if (directory_) {
      summarise(measured, [&] { work.still_working(); });
      outcome.summary = summary_;
      outcome.weights_file = path;
      write_records(outcome, run_, *directory_, [&] { work.still_working(); });
    }
    work.end();
    return directory_ ? std::move(outcome) : RunOutcome{};
  }

  // `bytes` of offloaded records, as bytes in host memory or on disk.
  AwayBytes away(Bytes bytes) const {
    return run_.offload_to == run::OffloadTo::Disk ? AwayBytes{.disk = bytes} : AwayBytes{.host = bytes};
  }

  void summarise(const std::vector<BytesByCategory>& measured, const std::function<void()>& after_part) {
    files::file_system().remove(directory_->stop_request());  // it may have come during the last step
    if (data_.is_text() && data_.evaluation_batches() > 0)
      summary_.bigram_loss = bigram_loss(data_, after_part);
    summary_.steps = steps();
    summary_.tokens = tokens_;
    summary_.tokens_per_second = static_cast<double>(tokens_ - tokens_before_) / summary_.wall_s;
    summary_.mfu = model_flops(summary_.tokens_per_second) / machine_flops_;
    const Host machine = this_host();
    summary_.machine = machine.processor + ", " + machine.instructions;
    for (std::size_t device = 0; device < measured.size(); ++device)
      summary_.devices.push_back({predicted_bytes(run_.predicted[device]), measured[device]});
  }

  const run::Run& run_;
  const TokenData& data_;
  comm::World world_;
  const RunDirectory* directory_;
  const RunObserver& observer_;
  const RunControl& control_;
  const TokenData::Part part_;
  const Settings settings_ = settings_of(run_, at::get_num_threads());
  Trainer trainer_;
  ResidentAccount resident_;
  std::optional<StateKeeper> keeper_;
  std::optional<MetricsFile> metrics_;
  std::optional<files::EventFile> curves_;  // for TensorBoard
  Flops machine_flops_ = 0;
  std::optional<StartMetrics> start_;          // until the first step is noted
  std::int64_t done_ = 0, samples_drawn_ = 0;  // steps; of the data
  Tokens tokens_ = 0, tokens_before_ = 0;      // without padding; before a resume
  std::int64_t skipped_in_a_row_ = 0;
  bool stopped_ = false, told_of_no_targets_ = false;
  KeptSteps kept_;
  RankTimeWatch rank_times_;
  Summary summary_;
};

}  // namespace

RunOutcome run(const run::Run& run, const TokenData& data, comm::Communicator& world,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control) {
  return Run(run, data, world, directory, observer, control).carry_out();
}

}  // namespace penstock::train
