// SPDX-License-Identifier: Apache-2.0
// One rank of a run: its stages, its optimizer, and one step after another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "backend/ledger.h"
#include "backend/side_stream.h"
#include "comm/groups.h"
#include "nn/kernels/profile.h"
#include "nn/stage.h"
#include "nn/vocabulary_shard.h"
#include "run/run.h"
#include "run/step_plan.h"
#include "train/exchange/server.h"
#include "train/offload/offloader.h"
#include "train/record/axis_traffic.h"
#include "train/record/document_work.h"
#include "train/record/expert_load.h"
#include "train/step/interpreter.h"
#include "train/step/layer_groups.h"
#include "train/step/optimizer.h"

namespace penstock::train {

// Results of one step, the same on every rank.
struct StepReport {
  double loss = 0;       // mean over the step's targets, nats; 0 without targets
  double grad_norm = 0;  // before clipping
  double lr = 0;
  bool without_targets = false;  // no token of the batch has a target
  bool skipped = false;          // no update: without targets, or loss or gradient not finite
  Seconds seconds = 0;           // of the slowest rank
  double bubble_fraction = 0;    // 1 − compute time / (ranks · seconds)
  Bytes peak_bytes = 0;          // maximum over the ranks, since the run began
  // Share of the offload copies' time during which no rank waited for one; empty without copies.
  std::optional<double> copy_hidden;
  // The same for collectives between replicas; empty for one replica.
  std::optional<double> collective_hidden;
  LayerTraffic traffic;
  std::optional<ExpertLoad> load;         // if the model has experts
  std::optional<DocumentWork> documents;  // if sequences have several documents
};

class Trainer {
 public:
  // Run and communicator must outlive the trainer. Creates the groups of ranks and this rank's stages.
  // `profile`: times every kernel call. `recorder`: notified of every op; may be null. Collective.
  Trainer(const run::Run& run, comm::Communicator& world, bool profile = false,
          FlightRecorder* recorder = nullptr);

  // Runs one optimizer step, number `step` from 1, over the same tokens on every rank of a pipeline.
  // Collective.
  StepReport step(std::int64_t step, const StepTokens& tokens);

  // Mean loss over the targets; changes nothing. Collective.
  double evaluate(const StepTokens& tokens);

  // Records of this rank's latest step.
  const std::vector<schedule::Event>& events() const { return events_; }
  const std::vector<schedule::ExchangeSpan>& exchanges() const { return exchanges_; }
  const std::vector<run::OpMemory>& memory() const { return memory_; }
  std::vector<nn::KernelCall> kernel_calls() const { return profile_.calls(); }  // when profiling
  const std::vector<Seconds>& processor_seconds() const { return processor_seconds_; }
  // This rank's time for backward actions over their analytic cost on an assumed machine: comparable between
  // ranks, whatever their stages. Empty if ranks do parts of others' work or have their own experts.
  std::optional<double> time_of_work();

  std::map<int, nn::Stage>& stages() { return stages_; }
  nn::VocabularyShard* vocabulary() { return vocabulary_ ? &*vocabulary_ : nullptr; }

  // Parameters of all stages, then of the vocabulary shard; includes both sides of tied embeddings.
  std::vector<nn::Parameter*> parameters();
  void weights_from_masters();  // after the masters were changed from outside
  Optimizer& optimizer() { return *optimizer_; }
  const backend::Ledger& ledger() const { return ledger_; }

  // The plan of the latest step: the run itself, or the run planned for the step's documents.
  const run::Run& plan() const { return planned_ ? *planned_ : run_; }
  const run::StepContent& content() const { return content_; }  // its documents; empty without any

  comm::Pipeline pipeline() { return groups_.pipeline; }
  CopyFacts copies() const { return offloader_ ? offloader_->facts() : CopyFacts{}; }  // of the latest step
  Bytes away_peak() const { return away_peak_; }  // of offloaded records, over all steps so far
  // Host memory pinned for a GPU's copies, all of it from the start.
  Bytes pinned_bytes() const { return store_ && !backend::compute_device().is_cpu() ? store_->size() : 0; }

 private:
  bool advance();
  std::unique_ptr<ExchangeServer> make_exchange_server();
  nn::ExpertOptions expert_options();
  Units units();
  void make_states();
  void prepare_replicas();
  std::unique_ptr<Interpreter> make_interpreter(const schedule::Program& program, run::Cuts cuts, Mode mode);
  void plan_for(const StepTokens& tokens);
  void make_step_parts();
  double mean_loss(const std::vector<double>& loss_sums, std::int64_t targets);
  void update();
  void gather_facts(Seconds seconds);

  const run::Run& run_;
  std::optional<run::Run> planned_;  // if plans differ from step to step
  run::StepContent content_;
  Seconds planning_ = 0;
  const schedule::Program evaluation_;
  const bool profiles_;
  FlightRecorder* const recorder_;
  bool made_ = false;  // groups may wait before later members exist
  comm::Groups groups_;
  LayerGroups layer_groups_;
  backend::Ledger ledger_;  // before the tensors counted in it
  std::map<int, nn::Stage> stages_;
  std::optional<nn::VocabularyShard> vocabulary_;  // under vocabulary parallelism
  std::unique_ptr<Optimizer> optimizer_;
  Units units_;
  std::optional<GradientBuffers> gradients_;
  // If records are offloaded. Destroyed after what has messages under way: freeing pinned memory waits for
  // the GPU, which after the loss of a rank waits for that rank until the messages are withdrawn.
  std::unique_ptr<OffloadStore> store_;
  std::unique_ptr<Offloader> offloader_;
  std::unique_ptr<ReplicaLane> replicas_;        // if there are several replicas
  std::unique_ptr<comm::Communicator> polling_;  // the pipeline's, whose waits advance that lane
  std::optional<backend::SideStream> side_;      // the exchange server's; one for all steps
  std::unique_ptr<ExchangeServer>
      exchange_server_;  // if the program has exchange; before the interpreter that uses it
  std::unique_ptr<Interpreter> training_;
  std::unique_ptr<Interpreter> evaluating_;
  Bytes away_peak_ = 0;
  std::vector<schedule::Event> events_;
  std::vector<schedule::ExchangeSpan> exchanges_;
  std::vector<run::OpMemory> memory_;
  nn::Profile profile_;
  std::vector<Seconds> processor_seconds_;
  std::optional<Seconds> work_;  // expected backward time of this device
  bool exchanging_ = false;      // a step is running that may serve others
  StepReport report_;            // of the current step
  std::int64_t targets_ = 0;     // of the current step
};

}  // namespace penstock::train
