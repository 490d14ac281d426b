// SPDX-License-Identifier: Apache-2.0
// A deliberately dumb execution of a program: at every step one of the things that may happen next happens,
// drawn by chance. Written apart from check(), to see what goes wrong at run time.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

class RandomExecution {
 public:
  // When a device serves the requests of others.
  enum class Serving {
    Always,  // between its operations and in every wait
    InOwnAttention,
  };

  RandomExecution(const Program& program, unsigned seed, Serving serving = Serving::Always)
      : program_(program), serving_(serving), served_(program.exchanges.size()), random_(seed) {
    for (const DeviceProgram& device : program.devices)
      states_.emplace_back(device.ops.size(), State::Waiting);
  }

  // "", or what went wrong: an op that used what was not there, or an execution that stuck.
  std::string run() {
    while (fault_.empty()) {
      std::vector<std::pair<int, int>> possible;
      for (int d = 0; d < program_.device_count(); ++d) {
        for (int i = 0; i < std::ssize(states_[d]); ++i) {
          if (may_move(d, i)) possible.emplace_back(d, i);
        }
      }
      for (int k = 0; k < std::ssize(served_); ++k) {
        if (may_serve(program_.exchanges[k]) && !served_[k]) possible.emplace_back(-1, k);
      }
      if (possible.empty()) break;
      const auto [d, i] = possible[random_() % possible.size()];
      d < 0 ? void(served_[i] = true) : move(d, i);
    }
    for (const auto& row : states_) {
      for (const State state : row) {
        if (state != State::Done && fault_.empty()) fault_ = "stuck";
      }
    }
    return fault_;
  }

 private:
  enum class State { Waiting, Started, Done };
  using Item = std::tuple<int, OpKind, Key>;  // device, what, of what

  const Op& op(int d, int i) const { return program_.devices[d].ops[i]; }

  bool may_move(int d, int i) const {
    if (states_[d][i] == State::Done) return false;
    if (states_[d][i] == State::Started) return may_finish(d, i);
    const Lane lane = lane_of(op(d, i).kind);
    const bool in_order = lane != Lane::Send && lane != Lane::Receive;
    for (int k = 0; k < i; ++k) {
      if (lane_of(op(d, k).kind) != lane) continue;
      if (states_[d][k] == State::Waiting || (in_order && states_[d][k] != State::Done)) return false;
    }
    for (const std::uint32_t earlier : program_.devices[d].after_of(op(d, i))) {
      if (states_[d][earlier] != State::Done) return false;
    }
    return true;
  }

  // A transfer or reduction ends together with its partner, the one with the same count on the other device;
  // a visit of the vocabulary with that of every device.
  bool may_finish(int d, int i) const {
    for (int k = 0; k < std::ssize(served_); ++k) {
      if (!served_[k] && is_for(program_.exchanges[k], op(d, i))) return false;
    }
    if (op(d, i).kind == OpKind::VocabularyLoss) return all_have_come(count_before(d, i, op(d, i).kind));
    const auto [e, k] = partner(d, i);
    return e < 0 || (k >= 0 && states_[e][k] != State::Waiting);
  }

  static bool is_for(const Exchange& exchange, const Op& o) {
    const bool kinds =
        is_backward(o.kind) ? exchange.backward() : o.kind == OpKind::Forward && !exchange.backward();
    return kinds && o.key == exchange.of.key;
  }

  bool may_serve(const Exchange& exchange) const {
    const auto runs = [&](int d, auto fits) {
      for (int i = 0; i < std::ssize(states_[d]); ++i) {
        if (states_[d][i] == State::Started && fits(op(d, i))) return true;
      }
      return false;
    };
    if (!runs(exchange.owner, [&](const Op& o) { return is_for(exchange, o); })) return false;
    return serving_ == Serving::Always || runs(exchange.partner, [](const Op& o) {
             return o.kind == OpKind::Forward || is_backward(o.kind);
           });
  }

  int count_before(int d, int i, OpKind kind) const {
    int count = 0;
    for (int k = 0; k < i; ++k) count += op(d, k).kind == kind;
    return count;
  }

  bool all_have_come(int nth) const {
    for (int d = 0; d < program_.device_count(); ++d) {
      int k = 0;
      for (int left = nth; k < std::ssize(states_[d]); ++k) {
        if (op(d, k).kind == OpKind::VocabularyLoss && left-- == 0) break;
      }
      if (k == std::ssize(states_[d]) || states_[d][k] == State::Waiting) return false;
    }
    return true;
  }

  static OpKind opposite(OpKind kind) {
    switch (kind) {
      case OpKind::SendForward:
        return OpKind::ReceiveForward;
      case OpKind::ReceiveForward:
        return OpKind::SendForward;
      case OpKind::SendBackward:
        return OpKind::ReceiveBackward;
      case OpKind::ReceiveBackward:
        return OpKind::SendBackward;
      case OpKind::SendEmbedding:
        return OpKind::ReceiveEmbedding;
      case OpKind::ReceiveEmbedding:
        return OpKind::SendEmbedding;
      case OpKind::SendEmbeddingGradient:
        return OpKind::ReceiveEmbeddingGradient;
      case OpKind::ReceiveEmbeddingGradient:
        return OpKind::SendEmbeddingGradient;
      default:
        return kind;
    }
  }

  std::pair<int, int> partner(int d, int i) const {
    const Op& own = op(d, i);
    if (own.peer < 0) return {-1, -1};
    int nth = 0;
    for (int k = 0; k < i; ++k) nth += op(d, k).kind == own.kind && op(d, k).peer == own.peer;
    for (int k = 0; k < std::ssize(states_[own.peer]); ++k) {
      const Op& other = op(own.peer, k);
      if (other.kind == opposite(own.kind) && other.peer == d && nth-- == 0) return {own.peer, k};
    }
    return {own.peer, -1};
  }

  void move(int d, int i) {
    if (states_[d][i] == State::Waiting) {
      states_[d][i] = State::Started;
      use(d, op(d, i));
      return;
    }
    states_[d][i] = State::Done;
    const Op& own = op(d, i);
    ++times_there_[{d, own.kind, own.key}];
    there_.insert({d, is_backward(own.kind) ? OpKind::Backward : own.kind, own.key});
  }

  void need(int d, const Op& o, std::initializer_list<OpKind> any_of, int stage) {
    for (const OpKind kind : any_of) {
      if (there_.contains({d, kind, o.key.at_stage(stage)})) return;
    }
    fault_ = "used too early";
  }

  void use(int d, const Op& o) {
    if (o.kind == OpKind::Forward && o.key.stage > 0)
      need(d, o, {OpKind::ReceiveForward, OpKind::Forward}, o.key.stage - (has(d, o) ? 0 : 1));
    if (is_backward(o.kind)) need(d, o, {OpKind::Forward}, o.key.stage);
    if (is_backward(o.kind) && o.key.stage + 1 < program_.stages) {
      const bool received = there_.contains({d, OpKind::ReceiveBackward, o.key});
      if (!received) need(d, o, {OpKind::Backward}, o.key.stage + 1);
    }
    if (is_backward(o.kind) && there_.contains({d, OpKind::Offload, o.key})) {
      need(d, o, {OpKind::Reload}, o.key.stage);
    }
    use_vocabulary(d, o);
    if (o.kind == OpKind::SendForward || o.kind == OpKind::Offload)
      need(d, o, {OpKind::Forward}, o.key.stage);
    if (o.kind == OpKind::SendBackward) need(d, o, {OpKind::Backward}, o.key.stage);
    if (o.kind == OpKind::Reload) need(d, o, {OpKind::Offload}, o.key.stage);
  }

  // What sharding the vocabulary adds, in programs that do.
  void use_vocabulary(int d, const Op& o) {
    const bool sharded = std::ranges::any_of(program_.devices[d].ops,
                                             [](const Op& op) { return op.kind == OpKind::VocabularyLoss; });
    if (!sharded) return;
    const bool last = o.key.stage + 1 == program_.stages;
    if (is_backward(o.kind) && last) need(d, o, {OpKind::VocabularyLoss}, o.key.stage);
    const bool runs_last = std::ranges::any_of(program_.devices[d].ops, [&](const Op& op) {
      return op.kind == OpKind::Forward && op.key.stage + 1 == program_.stages;
    });
    if (o.kind == OpKind::VocabularyLoss && runs_last) need(d, o, {OpKind::Forward}, o.key.stage);
    if (o.kind == OpKind::SendEmbeddingGradient) need(d, o, {OpKind::Backward}, 0);
    if (o.kind == OpKind::EmbeddingGradient) need(d, o, {OpKind::ReceiveEmbeddingGradient}, 0);
    if (o.kind == OpKind::Forward && o.key.stage == 0) {
      const auto parts = times_there_[{d, OpKind::ReceiveEmbedding, o.key.at_stage(0)}];
      if (parts + 1 != program_.device_count()) fault_ = "used too early";
    }
  }

  bool has(int d, const Op& o) const { return there_.contains({d, OpKind::ReceiveForward, o.key}); }

  const Program& program_;
  const Serving serving_;
  std::vector<bool> served_;  // [exchange]
  std::mt19937 random_;
  std::vector<std::vector<State>> states_;
  std::set<Item> there_;
  std::map<Item, int> times_there_;
  std::string fault_;
};

}  // namespace penstock::schedule
