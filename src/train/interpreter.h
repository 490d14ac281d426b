// SPDX-License-Identifier: Apache-2.0
// Carries out one device's list of a program: a loop and a switch. It obeys the program and nothing else.
//
// Compute ops run at once on the calling thread. Sends and receives are posted without blocking and polled
// between ops; a compute op waits for the receives it names. Copies of offloading run on threads of their own
// and are waited for likewise. Every op leaves one event in the timeline.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "model/slices.h"
#include "nn/stage.h"
#include "nn/vocabulary_shard.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/help_desk.h"
#include "train/offloader.h"
#include "train/op_memory.h"

namespace penstock::train {

// The tokens of one step of one pipeline: m micro-batches of b sequences of s tokens. Every device has all of
// them.
struct StepTokens {
  std::vector<at::Tensor> tokens;   // m × [b, s] int64
  std::vector<at::Tensor> targets;  // m × [b, s] int64; -1: no target
  std::int64_t target_count = 0;    // targets that are not -1, over all micro-batches
};

enum class Mode { Train, Evaluate };

struct StepResult {
  // Unscaled loss of each (micro-batch, slice) in ascending order; all 0 except on the device of the last
  // stage.
  std::vector<double> loss_sums;
  std::vector<schedule::Event> events;  // one per op, seconds since the step began here
  std::vector<OpMemory> memory;         // one per op of the compute lane, in order; empty without a ledger

  // Processor time that this rank's thread spent on each op: what the op takes where other ranks do not share
  // the core. With more than one thread a rank the others' time is not in it. Transfers have 0.
  std::vector<Seconds> processor_seconds;  // without what was spent on others' requests

  std::vector<schedule::HelpSpan> help;  // when it served others, and waited for them inside its ops
};

class Interpreter {
 public:
  // What an interpreter needs to know of the run. Everything outlives the interpreter.
  struct Setting {
    const schedule::Program& program;
    int device = 0;
    std::map<int, nn::Stage>& stages;                    // by number: the ones on this device
    comm::Communicator& pipeline;                        // rank = device
    std::vector<std::vector<model::TokenRange>> slices;  // of each micro-batch
    std::int64_t sequences = 1;                          // b
    std::int64_t hidden = 0;                             // width of what travels between stages
    at::ScalarType type = at::kFloat;                    // its element type
    Mode mode = Mode::Train;
    Offloader* offloader = nullptr;             // of this device's list, when it has copies
    nn::VocabularyShard* vocabulary = nullptr;  // this device's, when the program shards the vocabulary
    HelpDesk* help = nullptr;  // this device's, when the program has help; `pipeline` is the desk's then
    // Carries out STEP, given this device's loss sums of the step; may be empty when evaluating.
    std::function<void(const std::vector<double>& loss_sums)> optimizer_step;
    nn::Ledger* ledger = nullptr;  // of this rank; may be null
  };
  explicit Interpreter(Setting setting);

  // One step, from first to last op. Throws RunError when a peer is lost.
  StepResult run(const StepTokens& step);

 private:
  // A message under way: its buffer lives here until the request is done.
  struct Flight {
    std::uint32_t op = 0;
    at::Tensor buffer;
    comm::Request request;
  };

  void execute(std::uint32_t index);
  void carry_out(std::uint32_t index);
  void forward(const schedule::Op& op);
  void backward(const schedule::Op& op);
  void send(std::uint32_t index, at::Tensor payload);
  void receive(std::uint32_t index);
  void finish(std::uint32_t index);
  void finish_receive(std::uint32_t index);
  void finish_send(std::uint32_t index);
  void free_what_is_sent();
  std::unique_ptr<nn::AttentionHelpers> helpers_of(const schedule::Op& op);
  void end_help();
  Seconds own_processor_time() const;  // without what was spent on others' requests

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

  at::Tensor empty_slice(const schedule::Op& op) const;
  bool is_sliced(const schedule::Op& op) const;
  at::Tensor rows_of_slice(const std::vector<at::Tensor>& batch, const schedule::Op& op) const;  // [N]
  double loss_scale() const;
  std::size_t slot(int stage, int micro_batch, int slice) const;
  Seconds now() const;
  void restart_clocks(std::uint32_t index);  // what the op did so far was waiting

  Setting setting_;
  const schedule::DeviceProgram& list_;
  std::vector<std::size_t> first_slot_;  // of each micro-batch, within a stage
  std::size_t slots_per_stage_ = 0;

  // Tensors between their producer and their consumer, by slot of the stage that they belong to.
  std::vector<at::Tensor> inputs_, outputs_, output_gradients_, input_gradients_;
  std::map<std::pair<int, std::size_t>, at::Tensor> embedding_parts_;  // by device they came from, and slot
  std::vector<Flight> receiving_, sending_;

  const StepTokens* step_ = nullptr;
  StepResult result_;
  std::chrono::steady_clock::time_point began_;
  Seconds processor_began_ = 0;  // of the op under way
};

}  // namespace penstock::train
