// SPDX-License-Identifier: Apache-2.0
// Carries out the help of a program (schedule/help.h) on one device: asks others to take their part of this
// device's attention, and takes its own part of theirs whenever it is asked, between any two kernels and in
// every wait.
//
// A request is an announcement of what is asked for, then keys and values, then queries (in a backward also
// outputs, log-sum-exps and output gradients); the reply is the partial result. One request of an owner to a
// helper is under way at a time, since the owner merges a layer before it begins the next. What a device
// computes does not depend on when it is served: replies are merged in the program's order.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "model/slice_halves.h"
#include "nn/attention_helpers.h"
#include "nn/attention_service.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::train {

class HelpDesk {
 public:
  struct Setting {
    const schedule::Program& program;
    int device = 0;
    comm::Communicator& pipeline;                        // rank = device
    std::vector<std::vector<model::TokenRange>> slices;  // of each micro-batch
    std::int64_t sequences = 1;                          // b
    std::int64_t heads = 1;
    std::int64_t kv_heads = 1;
    std::int64_t head_dim = 1;
    at::ScalarType type = at::kFloat;
    Seconds timeout = 120;
  };
  // Everything in the setting outlives the desk.
  explicit HelpDesk(Setting setting);
  ~HelpDesk();

  // The pipeline's communicator, whose waits serve.
  comm::Communicator& pipeline() { return *attentive_; }

  // Begins a step; times in spans are since then.
  void begin(std::chrono::steady_clock::time_point began);

  // Who takes a part of the op's attention; null when nobody does.
  std::unique_ptr<nn::AttentionHelpers> helpers_of(const schedule::Op& op);

  // Serves what has arrived, without waiting; false when there was nothing to do. Throws RunError when a peer
  // is lost.
  bool serve();

  // Ends this device's own requests of the step, and serves until nobody will ask any more. Later calls of
  // the step do nothing.
  void drain();

  // Of the step since begin(), by start.
  const std::vector<schedule::HelpSpan>& spans() const { return spans_; }
  Seconds processor_seconds() const { return processor_seconds_; }  // spent on others' requests

 private:
  friend class OwnRequests;
  using Pass = nn::AttentionHelpers::Pass;
  using Key = std::tuple<bool, int, int, int>;  // backward, stage, micro-batch, slice

  // A message under way: its buffer lives here until the request is done.
  struct Flight {
    int peer = 0;
    at::Tensor buffer = {};
    comm::Request request = {};
  };

  // A device that asks this one, and its next announcement.
  struct Owner {
    int device = 0;
    bool ended = false;
    Flight announcement;
  };

  // A request on its way in.
  struct Job {
    std::uint32_t help = 0;
    Pass pass = Pass::Forward;
    std::vector<nn::KeyValues> parts;
    at::Tensor query, output, log_sum_exp, grad_output;
    std::vector<comm::Request> arriving;
  };

  void await_announcement(Owner& owner);
  bool take_announcement(Owner& owner);
  void accept(const Owner& owner, std::uint32_t help, Pass pass);
  void carry_out(const Job& job);
  void begin_wait(std::uint32_t help);  // for a reply to this device
  void end_wait();
  void reply(const Job& job);

  void send(const at::Tensor& buffer, int to, schedule::Channel channel);
  void forget_sent();
  void announce(int to, int help, Pass pass);
  int unfinished() const;
  std::vector<model::SlicePart> parts_of(const schedule::Help& help) const;
  at::Tensor room(at::IntArrayRef sizes, at::ScalarType type) const;
  at::Tensor room_of_queries(const schedule::Help& help, at::ScalarType type) const;  // [b, H, T, d]
  at::Tensor room_of_outputs(const schedule::Help& help) const;  // as they travel, see as_sent
  at::Tensor as_sent(const at::Tensor& outputs) const;
  at::Tensor as_used(const at::Tensor& sent) const;
  at::ScalarType accumulator() const;
  Seconds now() const;

  Setting setting_;
  std::map<Key, std::vector<std::uint32_t>> own_;  // by this device's op, in the program's order
  std::vector<int> helpers_;                       // of this device's ops
  std::vector<Owner> owners_;
  std::vector<Job> jobs_;
  std::vector<Flight> sending_;
  std::unique_ptr<comm::Communicator> attentive_;
  std::vector<schedule::HelpSpan> spans_;
  Seconds processor_seconds_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::optional<schedule::HelpSpan> wait_;  // under way
  bool serving_ = false;
  bool drained_ = true;
};

}  // namespace penstock::train
