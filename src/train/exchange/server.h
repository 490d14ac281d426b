// SPDX-License-Identifier: Apache-2.0
// Runs a program's context exchange (schedule/exchange.h) on one device: requests the parts of its attention
// that others compute, and serves their requests between any two kernels and in every wait.
//
// A request is an announcement, then keys and values, then queries (in a backward also outputs, log-sum-exps
// and output gradients); the reply is the partial result. An owner has one request to a partner in flight at
// a time, since it merges a layer before it begins the next. Results do not depend on timing: replies are
// merged in the program's order. On a GPU the server handles requests in a side stream, so that the owner
// does not wait for work that its partner has already issued to its GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/clock.h"
#include "backend/side_stream.h"
#include "comm/groups.h"
#include "comm/message.h"
#include "model/slice_halves.h"
#include "nn/attention_partners.h"
#include "nn/attention_service.h"
#include "run/run.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/exchange/exchange_times.h"

namespace penstock::train {

class ExchangeServer {
 public:
  // Serves the device that is this rank of the pipeline. `run` and `side` must outlive the server. Waits also
  // run `meanwhile`.
  ExchangeServer(const run::Run& run, comm::Pipeline pipeline, backend::SideStream& side,
                 std::function<bool()> meanwhile = {});
  ~ExchangeServer();

  // The pipeline's communicator; its waits serve requests.
  comm::Pipeline pipeline() { return comm::Pipeline(*polling_); }

  // Begins a step. `documents`: of each micro-batch, as in nn::Documents, until the step ends; or empty.
  void begin(std::span<const at::Tensor> documents);

  // The devices that compute part of the op's attention; null when none.
  std::unique_ptr<nn::AttentionPartners> partners_of(const schedule::Op& op);

  // Serves arrived requests without blocking; false when nothing has moved. Throws RunError when a peer is
  // lost.
  bool serve();

  // Announces the end of this device's requests in the step, and serves until all others have ended theirs.
  // Later calls in the step do nothing.
  void drain();

  const ExchangeTimes& times() const { return times_; }             // of the step since begin()
  Seconds processor_seconds() const { return processor_seconds_; }  // spent on others' requests

 private:
  friend class OwnRequests;
  using Pass = nn::AttentionPartners::Pass;

  // A message in flight; owns its buffer until the request is done.
  struct Flight {
    comm::Message message = {};
    at::Tensor buffer = {};
    comm::Request request = {};
  };

  // A device that sends requests to this one, and its next announcement.
  struct Owner {
    int device = 0;
    bool ended = false;
    Flight announcement;
  };

  // An incoming request.
  struct Job {
    std::uint32_t exchange = 0;
    Pass pass = Pass::Forward;
    std::vector<nn::AskedKeys> parts;
    at::Tensor query, output, log_sum_exp, grad_output;
    std::vector<comm::Request> arriving;
  };

  void await_announcement(Owner& owner);
  bool take_announcement(Owner& owner);
  void accept(const Owner& owner, std::uint32_t exchange, Pass pass);
  bool serve_arrived();
  void carry_out(const Job& job);
  void reply(const Job& job);

  comm::Message message_of(bool sending, const at::Tensor& buffer, int peer, schedule::Channel channel) const;
  using Flights = std::vector<Flight>;
  void send(const at::Tensor& buffer, int to, schedule::Channel channel, Flights& flights);
  void send(const at::Tensor& buffer, int to, schedule::Channel channel) {
    send(buffer, to, channel, asking_);
  }
  static bool forget_sent(Flights& flights);  // whether any was
  void announce(int to, int exchange, Pass pass);
  const comm::Message& unfinished() const;
  std::vector<model::SlicePart> parts_of(const schedule::Exchange& exchange) const;
  nn::kernels::Visible visible_of(const schedule::Exchange& exchange, const model::SlicePart& part) const;
  at::Tensor words() const;
  at::Tensor room(at::IntArrayRef sizes, at::ScalarType type) const;
  at::Tensor room_of_queries(const schedule::Exchange& exchange, at::ScalarType type) const;  // [b, H, T, d]
  at::Tensor room_of_keys(const model::SlicePart& part, at::ScalarType type) const;           // [b, K, T, d]
  at::Tensor room_of_outputs(const schedule::Exchange& exchange) const;  // in the order of as_sent
  at::Tensor as_sent(const at::Tensor& outputs) const;
  at::Tensor as_used(const at::Tensor& sent) const;
  at::ScalarType accumulator() const;

  const run::Run& run_;
  const model::Shape shape_;  // of the cached keys: their heads
  const comm::Pipeline pipeline_;
  const at::ScalarType type_;
  const Seconds timeout_;
  std::map<schedule::PassKey, std::vector<std::uint32_t>>
      own_;                    // by this device's op, in the program's order
  std::vector<int> partners_;  // of this device's ops
  std::vector<Owner> owners_;
  backend::SideStream& side_;
  std::vector<Job> jobs_;  // and their replies: in the side stream
  Flights replying_;
  Flights asking_;
  std::unique_ptr<comm::Communicator> polling_;
  std::span<const at::Tensor> documents_;
  ExchangeTimes times_;
  Seconds processor_seconds_ = 0;
  bool serving_ = false;
  bool drained_ = true;
};

}  // namespace penstock::train
