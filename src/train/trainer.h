// SPDX-License-Identifier: Apache-2.0
// One rank of a run: its stages, its optimizer, and one step after another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "nn/ledger.h"
#include "nn/profile.h"
#include "nn/stage.h"
#include "nn/vocabulary_shard.h"
#include "train/help_desk.h"
#include "train/interpreter.h"
#include "train/offloader.h"
#include "train/optimizer.h"
#include "train/run_plan.h"

namespace penstock::train {

// What one step came to, the same on every rank.
struct StepReport {
  double loss = 0;       // mean over the step's targets, nats
  double grad_norm = 0;  // before clipping
  double lr = 0;
  bool skipped = false;        // loss or gradient was not finite: nothing was changed
  Seconds seconds = 0;         // of the slowest rank
  double bubble_fraction = 0;  // 1 − compute time / (ranks · seconds)
  Bytes peak_bytes = 0;        // greatest over the ranks, since the run began
  // Offloading: the share of the copies' time during which no rank waited for one; nothing where none ran.
  std::optional<double> copy_hidden;
};

class Trainer {
 public:
  // The plan and the communicator outlive the trainer. Makes the stages that live on this rank.
  Trainer(const RunPlan& plan, comm::Communicator& pipeline);

  // One optimizer step, number `step` from 1, over the same tokens on every rank. Collective.
  StepReport step(std::int64_t step, const StepTokens& tokens);

  // Mean loss over the targets; changes nothing. Collective.
  double evaluate(const StepTokens& tokens);

  // The latest step of this rank.
  const std::vector<schedule::Event>& events() const { return events_; }
  const std::vector<schedule::HelpSpan>& help() const { return help_; }
  const std::vector<OpMemory>& memory() const { return memory_; }
  const std::vector<nn::KernelCall>& kernel_calls() const { return profile_.calls(); }  // when profiling
  const std::vector<Seconds>& processor_seconds() const { return processor_seconds_; }

  std::map<int, nn::Stage>& stages() { return stages_; }
  nn::VocabularyShard* vocabulary() { return vocabulary_ ? &*vocabulary_ : nullptr; }

  // Of all stages, then of the vocabulary's shard; replicas included.
  std::vector<nn::Parameter*> parameters();
  void weights_from_masters();  // after the masters have been changed from outside
  Optimizer& optimizer() { return *optimizer_; }
  const nn::Ledger& ledger() const { return ledger_; }
  CopyFacts copies() const { return offloader_ ? offloader_->facts() : CopyFacts{}; }

 private:
  std::unique_ptr<HelpDesk> make_help_desk();
  std::unique_ptr<Interpreter> make_interpreter(const schedule::Program& program, Mode mode);
  double mean_loss(std::vector<double> loss_sums, std::int64_t targets);
  void update(const std::vector<double>& loss_sums);
  void gather_facts(Seconds seconds);

  const RunPlan& plan_;
  comm::Communicator& pipeline_;
  nn::Ledger ledger_;  // before the tensors that count in it
  std::map<int, nn::Stage> stages_;
  std::optional<nn::VocabularyShard> vocabulary_;  // under vocabulary parallelism
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<HelpDesk> help_desk_;  // where the program has help; before the interpreter that uses it
  std::unique_ptr<Interpreter> training_;
  std::unique_ptr<Interpreter> evaluating_;
  std::unique_ptr<Offloader> offloader_;  // where records leave
  std::vector<schedule::Event> events_;
  std::vector<schedule::HelpSpan> help_;
  std::vector<OpMemory> memory_;
  nn::Profile profile_;
  std::vector<Seconds> processor_seconds_;
  StepReport report_;         // of the step under way
  std::int64_t targets_ = 0;  // of the step under way
};

}  // namespace penstock::train
