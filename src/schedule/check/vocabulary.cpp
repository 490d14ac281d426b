// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/vocabulary.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "schedule/check/knowledge.h"
#include "schedule/program_text.h"

namespace penstock::schedule {
namespace {

bool is_on_stage_zero(OpKind kind) {
  return kind == OpKind::ReceiveEmbedding || kind == OpKind::SendEmbeddingGradient;
}

class Vocabulary {
 public:
  Vocabulary(const OpTable& table, Findings& findings) : table_(table), findings_(findings) {
    for (const DeviceProgram& device : table.program().devices) knowledge_.emplace_back(device);
  }

  void find() {
    const std::size_t before = findings_.count();
    for (int device = 0; device < table_.program().device_count(); ++device) {
      Cell cell = table_.units().row_begin(device);
      for (const Op& op : table_.program().devices[device].ops) {
        if (is_of_vocabulary(op.kind)) enter(op, device, cell);
        ++cell;
      }
    }
    if (findings_.count() == before && !seen_.empty()) {
      for_units([&](const Key& key) { judge_visits(key); });
      for_units([&](const Key& key) { judge_embedding(key); });
    }
  }

 private:
  using Entry = std::tuple<OpKind, int, int, Key>;  // kind, device, other device, micro-batch and slice

  static Entry entry_of(OpKind kind, int device, int other, const Key& key) {
    return {kind, device, other, key.at_stage(0)};
  }

  template <class Judge>
  void for_units(Judge judge) {
    const Extent& extent = table_.units().extent();
    for (int j = 0; j < extent.micro_batches(); ++j) {
      for (int i = 0; i < extent.slices_of(j) && !findings_.full(); ++i) {
        judge(make_key(0, j, i));
      }
    }
  }

  void tell(Rule rule, Cell cell, const std::string& reason) {
    if (!findings_.full()) findings_.add(table_.located(rule, cell, reason));
  }

  void tell_missing(OpKind kind, int device, const Key& key) {
    if (findings_.full()) return;
    const Op absent{.key = key.at_stage(stage_of(kind)), .kind = kind};
    findings_.add({Rule::Missing,
                   device,
                   -1,
                   {},
                   table_.token(absent) + " is missing: device " + std::to_string(device) +
                       " never runs it, although the vocabulary is sharded"});
  }

  int last_stage() const { return table_.units().extent().stages - 1; }
  int stage_of(OpKind kind) const { return kind == OpKind::VocabularyLoss ? last_stage() : 0; }

  void enter(const Op& op, int device, Cell cell) {
    const int stage = stage_of(op.kind);
    const bool known = table_.units().extent().contains(op.key);
    if (!known || op.key.stage != stage)
      return tell(Rule::Range, cell, " names an action that is not of stage " + std::to_string(stage));
    if (op.kind != OpKind::VocabularyLoss && !is_in_place(op, device, cell)) return;
    const int other = is_embedding_transfer(op.kind) ? op.peer : -1;
    const auto [place, first] = seen_.try_emplace(entry_of(op.kind, device, other, op.key), cell);
    if (!first)
      return tell(Rule::Duplicate, cell, " comes a second time, also at " + table_.where(place->second));
  }

  bool is_in_place(const Op& op, int device, Cell cell) {
    const int home = table_.home(op.key.at_stage(0));
    const bool with_home =
        is_on_stage_zero(op.kind) ? device == home : device != home && (op.peer == home || op.peer < 0);
    if (!with_home) {
      tell(
          Rule::Home, cell,
          " is not an op between another device and device " + std::to_string(home) + ", where stage 0 runs");
    }
    return with_home;
  }

  // Returns kNoCell after a finding if the device lacks the op.
  Cell require(OpKind kind, int device, int other, const Key& key) {
    const auto found = seen_.find(entry_of(kind, device, other, key));
    if (found != seen_.end()) return found->second;
    tell_missing(kind, device, key);
    return kNoCell;
  }

  void judge_visits(const Key& key) {
    const int home = table_.home(key.at_stage(last_stage()));
    const TableEntry& unit = table_.units().unit(key.at_stage(last_stage()));
    for (int device = 0; device < table_.program().device_count(); ++device) {
      const Cell visit = require(OpKind::VocabularyLoss, device, -1, key);
      if (visit == kNoCell || device != home) continue;
      if (visit < unit.forward || visit > unit.gradient())
        tell(Rule::Order, visit, " does not come between the last stage's forward and backward");
    }
  }

  void judge_embedding(const Key& key) {
    const int home = table_.home(key);
    const TableEntry& unit = table_.units().unit(key);
    for (int device = 0; device < table_.program().device_count(); ++device) {
      if (device == home) continue;
      const Cell embedding = require(OpKind::ReceiveEmbedding, home, device, key);
      const Cell gradient = require(OpKind::SendEmbeddingGradient, home, device, key);
      require(OpKind::SendEmbedding, device, home, key);
      const Cell arrived = require(OpKind::ReceiveEmbeddingGradient, device, home, key);
      const Cell used = require(OpKind::EmbeddingGradient, device, -1, key);
      need_done(embedding, unit.forward);
      need_done(unit.gradient(), gradient);
      need_done(arrived, used);
    }
  }

  // Both cells must be on one device.
  void need_done(Cell need, Cell cell) {
    if (need == kNoCell || cell == kNoCell) return;
    const int device = table_.units().place(cell).device;
    const Cell begin = table_.units().row_begin(device);
    if (knowledge_[device].is_done(need - begin, cell - begin)) return;
    tell(Rule::Order, cell,
         " may start before " + table_.token(table_.op(need)) + " (" + table_.where(need) +
             ") is done: it does not wait for it");
  }

  const OpTable& table_;
  Findings& findings_;
  std::vector<Knowledge> knowledge_;  // [device]
  std::map<Entry, Cell> seen_;
};

}  // namespace

void find_bad_vocabulary(const OpTable& table, Findings& findings) {
  const bool any = std::ranges::any_of(table.program().devices, [](const DeviceProgram& device) {
    return std::ranges::any_of(device.ops, [](const Op& op) { return is_of_vocabulary(op.kind); });
  });
  if (any) Vocabulary(table, findings).find();
}

}  // namespace penstock::schedule
