// SPDX-License-Identifier: Apache-2.0
#include "sim/memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "schedule/units.h"

namespace penstock::sim {
namespace {

using schedule::DeviceProgram;
using schedule::Event;
using schedule::Op;
using schedule::OpKind;

struct Change {
  Seconds time = 0;
  Bytes bytes = 0;
  Held held = Held::Records;
  bool stands = false;  // counts for the peak even if memory is freed at the same instant
};

// Collects what one device's ops allocate and free.
class Ledger {
 public:
  Ledger(const schedule::Program& program, const schedule::Timeline& timeline, int device, const Costs& costs)
      : program_(program),
        device_(device),
        list_(program.devices[device]),
        events_(timeline.devices[device]),
        timeline_(timeline),
        costs_(costs),
        visits_(std::ranges::count(list_.ops, OpKind::VocabularyLoss, &Op::kind) > 0) {
    for (const Op& op : list_.ops) {
      if (op.kind == OpKind::Forward) stages_.insert(op.key.stage);
      if (op.kind == OpKind::ReleaseWeights) sharded_.insert(op.key.stage);
    }
  }

  std::vector<Change> finish() {
    for (std::uint32_t i = 0; i < list_.ops.size(); ++i) {
      const bool computes = lane_of(list_.ops[i].kind) == schedule::Lane::Compute;
      if (computes) settle_copies(list_.ops[i], events_[i].start);
      settle_reductions(i, computes ? events_[i].start : reached_);
      visit(list_.ops[i], events_[i]);
      if (computes) reached_ = events_[i].end;
    }
    // No op waits for these copies: they are settled when they are done.
    for (const std::uint32_t copy : unsettled_) settle(copy, events_[copy].end);
    return std::move(changes_);
  }
  Bytes temporary() const { return temporary_; }

  // Call after finish(). Peak of the offloaded bytes, in list order.
  Bytes away_peak() const { return away_peak_; }

 private:
  void add(Seconds time, Bytes bytes, Held held) {
    if (bytes != 0) changes_.push_back({time, bytes, held});
  }

  void hold(Seconds from, Seconds until, Bytes bytes, Held held) {
    if (from >= until) return;
    add(from, bytes, held);
    add(until, -bytes, held);
  }

  void visit(const Op& op, const Event& event) {
    if (is_action(op.kind)) {
      visit_action(op, event, costs_.record(op.key));
    }
    if (op.kind == OpKind::VocabularyLoss) visit_vocabulary(op, event);
    if (sharded_.contains(op.key.stage)) visit_sharded(op, event);
    if (lane_of(op.kind) == schedule::Lane::Compute) empty_queues(op, event.start);
    if (is_send(op.kind)) hold(event.start, std::max(event.end, next_posted(op)), op.bytes, Held::Buffers);
    if (is_receive(op.kind)) hold(event.start, event.end, op.bytes, Held::Buffers);
    if (op.kind == OpKind::Offload) away_peak_ = std::max(away_peak_, away_ += op.bytes);
    // Issued before the next compute op waits for its copies, so before their memory is freed.
    if (op.kind == OpKind::Reload) changes_.push_back({reached_, op.bytes, Held::Records, true});
    if (op.kind == OpKind::Offload || op.kind == OpKind::Reload)
      unsettled_.insert(static_cast<std::uint32_t>(&op - list_.ops.data()));
  }

  // As for copies, memory is allocated where a gather is issued and freed where an op awaits a REDUCE_GRAD.
  void visit_sharded(const Op& op, const Event& event) {
    const StageBytes bytes = costs_.stage(op.key.stage);
    if (op.kind == OpKind::GatherWeights) changes_.push_back({reached_, bytes.weights, Held::Weights, true});
    if (op.kind == OpKind::ReleaseWeights) add(reached_, -bytes.weights, Held::Weights);
    if (op.kind == OpKind::ReduceGradients)
      unsettled_.insert(static_cast<std::uint32_t>(&op - list_.ops.data()));
    if (contributes(program_, op, op.key.stage) && contributed_.insert(op.key.stage).second)
      add(event.start, bytes.gradients, Held::Gradients);
  }

  // A copy's destination is allocated where the program issues it and its source is freed where the first
  // compute op waits for it: memory depends only on the order, not on the speed of copies.
  void settle_copies(const Op& op, Seconds start) {
    for (const std::uint32_t wait : list_.after_of(op)) {
      if (unsettled_.erase(wait) > 0) settle(wait, start);
    }
  }

  // An op that waits for a collective waits for all earlier ones too (train/step/replica_lane), STEP for all,
  // and a sum of both sides of tied embeddings for those before it.
  void settle_reductions(std::uint32_t index, Seconds time) {
    const Op& op = list_.ops[index];
    const bool ties = op.kind == OpKind::ReduceGradients && op.group != mesh::Group::Replica;
    std::uint32_t end = op.kind == OpKind::OptimizerStep || ties ? index : 0;
    for (const std::uint32_t wait : list_.after_of(op)) {
      if (lane_of(list_.ops[wait].kind) == schedule::Lane::Collective) end = std::max(end, wait + 1);
    }
    if (end == 0 || unsettled_.empty()) return;
    std::erase_if(unsettled_, [&](std::uint32_t wait) {
      if (wait >= end || list_.ops[wait].kind != OpKind::ReduceGradients) return false;
      settle(wait, time);
      return true;
    });
  }

  void settle(std::uint32_t copy, Seconds time) {
    const Op& op = list_.ops[copy];
    if (op.kind == OpKind::Offload) add(time, -op.bytes, Held::Records);
    if (op.kind == OpKind::Reload) away_ -= op.bytes;
    if (op.kind == OpKind::ReduceGradients) add(time, -costs_.stage(op.key.stage).gradients, Held::Gradients);
  }

  void visit_action(const Op& op, const Event& event, const RecordBytes& bytes) {
    const ActionBytes action = costs_.action(device_, op);
    temporary_ = std::max(temporary_, action.temporary);
    const bool forward = op.kind == OpKind::Forward;
    if (op.kind != OpKind::BackwardWeight) {
      take_handed_over(op, event.start, forward ? -1 : 1);
      hand_over(op, event.end, forward ? 1 : -1);
    }
    const Bytes shown = forward ? bytes.record + action.logits + action.messages : 0;
    hold(event.start, event.end, action.growth - std::min(action.growth, shown), Held::Transient);
    if (forward) {
      add(event.start, bytes.record, Held::Records);
      hold(event.start, event.end, action.logits, Held::Logits);
      hold(event.start, event.end, action.messages, Held::Buffers);
      if (!visits_) add(event.end, bytes.logits, Held::Logits);
    }
    if (op.kind == OpKind::BackwardWeight) add(event.end, -bytes.weight_record, Held::WeightRecords);
    if (!is_backward(op.kind)) return;
    if (begun_.insert({op.key.stage, op.key.micro_batch}).second) {
      begin_kv_gradients(op, action.growth > 0 ? event.end : event.start);
    }
    add(event.end, -bytes.kv_gradient, Held::KvGradients);
    add(event.end, -bytes.record, Held::Records);
    add(event.end, -bytes.logits, Held::Logits);
    if (op.kind == OpKind::BackwardInput) add(event.end, bytes.weight_record, Held::WeightRecords);
  }

  // F's output goes to the next stage, the gradient of B or I to the previous one. To a stage on another
  // device it goes as a message.
  void hand_over(const Op& op, Seconds time, int towards) {
    if (stages_.contains(op.key.stage + towards)) handed_over_[{op.key, towards}] = time;
  }

  void take_handed_over(const Op& op, Seconds time, int from) {
    const auto made = handed_over_.find({op.key.at_stage(op.key.stage + from), -from});
    if (made == handed_over_.end()) return;
    hold(made->second, time, costs_.record(made->first.first).handed_over, Held::Transient);
    handed_over_.erase(made);
  }

  // The time at which the receive of this device's next message to that peer is posted. Until then the
  // message stays here, arrived or not.
  Seconds next_posted(const Op& send) {
    const auto channel = channel_of(send.kind);
    auto& [posted, next] = receives_[{send.peer, channel}];
    if (next == 0) {
      const DeviceProgram& peer = program_.devices[send.peer];
      for (std::uint32_t i = 0; i < peer.ops.size(); ++i) {
        const Op& op = peer.ops[i];
        if (is_receive(op.kind) && op.peer == device_ && channel_of(op.kind) == channel)
          posted.push_back(timeline_.devices[send.peer][i].start);
      }
    }
    return next < posted.size() ? posted[next++] : 0;
  }

  // The last stage's device keeps the loss gradient that a LOSS produces.
  void visit_vocabulary(const Op& op, const Event& event) {
    const ActionBytes taken = costs_.action(device_, op);
    temporary_ = std::max(temporary_, taken.temporary);
    hold(event.start, event.end, taken.logits, Held::Logits);
    hold(event.start, event.end, taken.messages, Held::Buffers);
    const Bytes shown = taken.logits + taken.messages;
    hold(event.start, event.end, taken.growth - std::min(taken.growth, shown), Held::Transient);
    if (stages_.contains(program_.stages - 1)) add(event.end, costs_.record(op.key).logits, Held::Logits);
  }

  // The last slice's backward contributes to the K,V gradients of all earlier slices.
  void begin_kv_gradients(const Op& op, Seconds time) {
    for (int slice = 0; slice < program_.slices[op.key.micro_batch]; ++slice) {
      add(time, costs_.record(schedule::make_key(op.key.stage, op.key.micro_batch, slice)).kv_gradient,
          Held::KvGradients);
    }
  }

  void empty_queues(const Op& op, Seconds start) {
    for (const std::uint32_t wait : list_.after_of(op)) {
      if (is_receive(list_.ops[wait].kind))
        hold(events_[wait].end, start, list_.ops[wait].bytes, Held::Queues);
    }
  }

  const schedule::Program& program_;
  const int device_;
  const DeviceProgram& list_;
  const std::vector<Event>& events_;
  const schedule::Timeline& timeline_;
  const Costs& costs_;
  const bool visits_;          // the vocabulary is sharded: LOSS produces the loss gradient
  std::set<int> stages_;       // stages with forwards on this device
  std::set<int> sharded_;      // stages that release their weights
  std::set<int> contributed_;  // stages of sharded weights with gradients so far
  std::vector<Change> changes_;
  std::map<std::pair<schedule::Key, int>, Seconds> handed_over_;  // [key, towards] end of the producer
  struct Receives {
    std::vector<Seconds> posted;  // in order
    std::size_t next = 0;
  };
  std::map<std::pair<int, schedule::Channel>, Receives> receives_;  // [peer, channel] the peer's receives
  Bytes away_ = 0;
  Bytes away_peak_ = 0;
  Seconds reached_ = 0;                // end of the previous compute op
  std::set<std::uint32_t> unsettled_;  // copies and reductions that no compute op has waited for
  Bytes temporary_ = 0;
  std::set<std::pair<int, int>> begun_;  // (stage, micro-batch) whose backward has begun
};

constexpr std::array<std::pair<std::string_view, model::Category>, kHeldKinds> kKinds{{
    {"records", model::Category::Activations},
    {"weight_records", model::Category::WeightRecords},
    {"kv_gradients", model::Category::KvGradients},
    {"queues", model::Category::Transfers},
    {"buffers", model::Category::Transfers},
    {"logits", model::Category::Logits},
    {"transient", model::Category::Transient},
    {"weights", model::Category::Weights},
    {"gradients", model::Category::Gradients},
}};

}  // namespace

std::string_view name_of(Held held) { return kKinds[static_cast<std::size_t>(held)].first; }

model::Category category_of(Held held) { return kKinds[static_cast<std::size_t>(held)].second; }

Bytes total(const HeldBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

MemoryUse account_memory(const schedule::Program& program, const schedule::Timeline& timeline, int device,
                         const Costs& costs, bool keep_samples) {
  Ledger ledger(program, timeline, device, costs);
  std::vector<Change> changes = ledger.finish();
  std::ranges::stable_sort(changes, {}, &Change::time);
  MemoryUse memory;
  memory.away_peak = ledger.away_peak();
  memory.temporary = ledger.temporary();
  HeldBytes& now = memory.at_end;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now[static_cast<std::size_t>(changes[i].held)] += changes[i].bytes;
    const bool more_follow = i + 1 < changes.size() && changes[i + 1].time == changes[i].time;
    if (more_follow && !changes[i].stands) continue;
    if (total(now) > memory.peak) {
      memory.peak = total(now);
      memory.at_peak = now;
    }
    for (std::size_t c = 0; c < now.size(); ++c) memory.peaks[c] = std::max(memory.peaks[c], now[c]);
    if (keep_samples) memory.samples.push_back({changes[i].time, now});
  }
  return memory;
}

}  // namespace penstock::sim
