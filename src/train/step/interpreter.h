// SPDX-License-Identifier: Apache-2.0
// Runs one device's list of a program, exactly in its order: a loop and a switch.
//
// Compute ops run at once on the calling thread. Sends and receives are posted without blocking and polled
// between ops; a compute op waits for the receives it names. Collectives of replicas advance at every kernel
// and during every wait; offload copies run on their own threads. Ops wait for both in the same way. Every op
// leaves one event in the timeline.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/clock.h"
#include "comm/groups.h"
#include "nn/stage.h"
#include "nn/vocabulary_shard.h"
#include "run/run.h"
#include "run/step_plan.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/exchange/server.h"
#include "train/flight/flight_recorder.h"
#include "train/offload/offloader.h"
#include "train/record/op_memory.h"
#include "train/step/gradient_buffers.h"
#include "train/step/op_times.h"
#include "train/step/replica_lane.h"

namespace penstock::train {

// The tokens of one step of one pipeline, on every device: m micro-batches of b sequences of s tokens; s may
// differ between micro-batches. Each replica has its own micro-batches.
struct StepTokens {
  std::vector<at::Tensor> tokens;       // m × [b, s] int64
  std::vector<at::Tensor> targets;      // m × [b, s] int64; -1: no target
  std::vector<at::Tensor> documents;    // m × [b, s] int64, contiguous, as in nn::Documents; may be empty
  std::int64_t target_count = 0;        // targets that are not -1, over all micro-batches of all replicas
  Tokens token_count = 0, padding = 0;  // of all replicas: in documents, and after them; from TokenData
  // Smallest and largest s of each micro-batch over the replicas; empty: s is the same on all.
  std::vector<Tokens> fewest = {}, most = {};
};

// Inputs of a plan for the step; empty without documents.
run::StepContent content_of(const StepTokens& step);

enum class Mode { Train, Evaluate };

struct StepResult {
  // Unscaled loss of each (micro-batch, slice) in ascending order; all 0 except on the device of the last
  // stage.
  std::vector<double> loss_sums;
  std::vector<schedule::Event> events;  // one per op, seconds since the step began here
  backend::DeviceClock clock;           // of the events
  std::vector<run::OpMemory> memory;    // one per op of the compute lane, in order; empty without a ledger

  // Processor time of this rank's thread for each op: the op's duration when no other rank shares the core.
  // Time of the rank's other threads is not included. Transfers have 0.
  std::vector<Seconds> processor_seconds;  // others' requests not included

  std::vector<schedule::ExchangeSpan> exchanges;  // spans of serving others, or waiting for them
};

// This device's parts that a program's ops use.
struct DeviceParts {
  std::map<int, nn::Stage>& stages;           // by number
  comm::Pipeline pipeline;                    // rank = device; its waits run `meanwhile`
  nn::TensorGroup& tensor;                    // this rank's
  const nn::ContextGroup& context;            // this rank's
  nn::VocabularyShard* vocabulary = nullptr;  // when the run shards the vocabulary
  comm::Communicator* visitors = nullptr;     // ranks of the vocabulary; null: the pipeline's
  Offloader* offloader = nullptr;             // when the program has copies
  ExchangeServer* exchange = nullptr;         // when the program has exchange
  GradientBuffers* gradients = nullptr;       // when training
  ReplicaLane* replicas = nullptr;            // with several replicas
  std::function<bool()> meanwhile;            // serves others, moves collectives; true if anything moved
  backend::Ledger* ledger = nullptr;          // this rank's; may be null
  FlightRecorder* recorder = nullptr;         // this rank's; may be null
  // Called by STEP: first sum_losses, which adds the loss sums over all ranks and so makes them wait for one
  // another; then optimizer_step. May be empty when evaluating.
  std::function<void(const std::vector<double>& loss_sums)> sum_losses;
  std::function<void()> optimizer_step;
};

class Interpreter {
 public:
  // `program`: the run's step or its evaluation, whose slices are `cuts`. Run, program and parts must outlive
  // the interpreter.
  Interpreter(const run::Run& run, const schedule::Program& program, run::Cuts cuts, Mode mode,
              DeviceParts parts);

  // One step, from first to last op. Throws RunError when a peer is lost.
  StepResult run(const StepTokens& step);

 private:
  // A message in flight; owns its buffer until the request is done.
  struct Flight {
    std::uint32_t op = 0;
    at::Tensor buffer;
    comm::Request request;
  };

  void begin(const StepTokens& step);
  StepResult end();  // after the last op
  void execute(std::uint32_t index);
  void carry_out(std::uint32_t index);
  void forward(const schedule::Op& op);
  void backward(const schedule::Op& op);
  void send(std::uint32_t index, at::Tensor payload);
  void receive(std::uint32_t index);
  void finish(std::uint32_t index);
  void finish_receive(std::uint32_t index);
  void finish_send(std::uint32_t index);
  void finish_collectives(std::uint32_t index);
  void reduce_gradients(std::uint32_t index);
  void step_optimizer(std::uint32_t index);
  void free_what_is_sent();
  std::unique_ptr<nn::AttentionPartners> partners_of(const schedule::Op& op);
  void end_exchange();
  Seconds own_processor_time() const;  // others' requests not included

  // Under vocabulary parallelism (interpreter_vocabulary.cpp). Stages 0 and S - 1 then have neither embedding
  // nor output layer.
  void visit_vocabulary(std::uint32_t index);
  at::Tensor embedded(const schedule::Op& op);
  void add_own_embedding_gradient(const schedule::Op& op, at::Tensor gradient);
  void add_received_embedding_gradient(const schedule::Op& op);
  at::Tensor embedding_payload(const schedule::Op& op);
  at::Tensor empty_part(const schedule::Op& op) const;

  void deliver(Flight& flight);
  void poll();
  void wait_for_sends();

  nn::SlicePlace place_of(const schedule::Op& op) const;
  std::vector<at::Tensor> own_tokens(const std::vector<at::Tensor>& batch,
                                     const schedule::Op& op) const;  // as nn::ForwardInput::tokens
  std::int64_t own_rows(const schedule::Op& op) const;
  at::Tensor empty_slice(const schedule::Op& op) const;
  bool is_sliced(const schedule::Op& op) const;
  at::Tensor rows_of_slice(const std::vector<at::Tensor>& batch, const schedule::Op& op) const;  // [N]
  double loss_scale() const;
  std::size_t slot(const schedule::Key& key) const;
  void restart_clocks(std::uint32_t index);  // the op's time so far was waiting
  std::vector<double> loss_sums() const;

  const run::Run& run_;
  const Mode mode_;
  DeviceParts parts_;
  const schedule::DeviceProgram& list_;
  const run::Cuts slices_;
  const at::ScalarType type_;            // of messages between stages
  std::vector<std::size_t> first_slot_;  // of each micro-batch, within a stage
  std::size_t slots_per_stage_ = 0;

  // Tensors between producer and consumer, by slot of their stage.
  std::vector<at::Tensor> inputs_, outputs_, output_gradients_, input_gradients_;
  std::map<std::pair<int, std::size_t>, at::Tensor> embedding_parts_;  // by source device and slot
  std::vector<Flight> receiving_, sending_;

  const StepTokens* step_ = nullptr;
  std::vector<at::Tensor> tokens_, targets_, document_starts_;  // the step's, on the compute device
  StepResult result_;
  std::vector<nn::kernels::LossSum> losses_;  // as StepResult::loss_sums
  OpTimes times_;
  Seconds processor_began_ = 0;  // of the running op
};

}  // namespace penstock::train
