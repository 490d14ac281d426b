// SPDX-License-Identifier: Apache-2.0
#include "schedule/check_vocabulary.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

#include "schedule/check_knowledge.h"
#include "schedule/program_text.h"

namespace penstock::schedule {
namespace {

constexpr std::array kOnStageZero{OpKind::ReceiveEmbedding, OpKind::SendEmbeddingGradient};
constexpr std::array kElsewhere{OpKind::SendEmbedding, OpKind::ReceiveEmbeddingGradient,
                                OpKind::EmbeddingGradient};

bool is_on_stage_zero(OpKind kind) { return std::ranges::find(kOnStageZero, kind) != kOnStageZero.end(); }

class Vocabulary {
 public:
  Vocabulary(const OpTable& table, Findings& findings)
      : table_(table), findings_(findings), visits_(table.program().devices.size()) {
    for (const DeviceProgram& device : table.program().devices) knowledge_.emplace_back(device);
  }

  Visits find() {
    const std::size_t before = findings_.count();
    for (int device = 0; device < std::ssize(visits_); ++device) {
      Cell cell = table_.units().row_begin(device);
      for (const Op& op : table_.program().devices[device].ops) {
        if (is_of_vocabulary(op.kind)) enter(op, device, cell);
        ++cell;
      }
    }
    if (findings_.count() == before && !seen_.empty()) {
      for_units([&](const Op& key) { judge_visits(key); });
      compare_orders();
      for_units([&](const Op& key) { judge_embedding(key); });
    }
    return std::move(visits_);
  }

 private:
  using Key = std::tuple<OpKind, int, int, int, int>;  // kind, device, other device, micro-batch, slice

  static Key key_of(OpKind kind, int device, int other, const Op& op) {
    return {kind, device, other, op.micro_batch, op.slice};
  }

  template <class Judge>
  void for_units(Judge judge) {
    const Extent& extent = table_.units().extent();
    for (int j = 0; j < extent.micro_batches(); ++j) {
      for (int i = 0; i < extent.slices_of(j) && !findings_.full(); ++i) {
        judge(Op{.slice = static_cast<std::int16_t>(i), .micro_batch = j});
      }
    }
  }

  void tell(Rule rule, Cell cell, const std::string& reason) {
    if (!findings_.full()) findings_.add(table_.located(rule, cell, reason));
  }

  void tell_missing(OpKind kind, int device, const Op& key, int stage) {
    if (findings_.full()) return;
    Op absent = key;
    absent.kind = kind;
    absent.stage = stage;
    findings_.add({Rule::Missing,
                   device,
                   -1,
                   {},
                   table_.token(absent) + " is missing: device " + std::to_string(device) +
                       " never runs it, although the vocabulary is sharded"});
  }

  int last_stage() const { return table_.units().extent().stages - 1; }

  void enter(const Op& op, int device, Cell cell) {
    const bool visit = op.kind == OpKind::VocabularyLoss;
    const int stage = visit ? last_stage() : 0;
    const bool known = table_.units().extent().contains({op.stage, op.micro_batch, op.slice, Kind::Forward});
    if (!known || op.stage != stage)
      return tell(Rule::Range, cell, " names what is not of stage " + std::to_string(stage));
    if (!visit && !is_in_place(op, device, cell)) return;
    const int other = is_embedding_transfer(op.kind) ? op.peer : -1;
    const auto [place, first] = seen_.try_emplace(key_of(op.kind, device, other, op), cell);
    if (!first)
      return tell(Rule::Duplicate, cell, " comes a second time, beside " + table_.where(place->second));
    if (visit) visits_[device].push_back(cell);
  }

  bool is_in_place(const Op& op, int device, Cell cell) {
    const int home = table_.home(0, op);
    const bool with_home =
        is_on_stage_zero(op.kind) ? device == home : device != home && (op.peer == home || op.peer < 0);
    if (!with_home) {
      tell(Rule::Home, cell,
           " is no op between another device and device " + std::to_string(home) + ", where stage 0 runs");
    }
    return with_home;
  }

  Cell seen(OpKind kind, int device, int other, const Op& key) const {
    const auto found = seen_.find(key_of(kind, device, other, key));
    return found == seen_.end() ? kNoCell : found->second;
  }

  void judge_visits(const Op& key) {
    const int home = table_.home(last_stage(), key);
    const TableEntry& unit = table_.units().unit(last_stage(), key.micro_batch, key.slice);
    for (int device = 0; device < std::ssize(visits_); ++device) {
      const Cell visit = seen(OpKind::VocabularyLoss, device, -1, key);
      if (visit == kNoCell) {
        tell_missing(OpKind::VocabularyLoss, device, key, last_stage());
      } else if (device == home && (visit < unit.forward || visit > unit.gradient())) {
        tell(Rule::Order, visit, " does not come between the last stage's forward and backward");
      }
    }
  }

  void compare_orders() {
    for (int device = 1; device < std::ssize(visits_); ++device) {
      const std::size_t count = std::min(visits_[0].size(), visits_[device].size());
      for (std::size_t k = 0; k < count; ++k) {
        const Op &first = table_.op(visits_[0][k]), &mine = table_.op(visits_[device][k]);
        if (first.micro_batch == mine.micro_batch && first.slice == mine.slice) continue;
        tell(Rule::Unmatched, visits_[device][k],
             " meets " + table_.token(first) + " (" + table_.where(visits_[0][k]) + "): both are visit " +
                 std::to_string(k));
        break;
      }
    }
  }

  void judge_embedding(const Op& key) {
    const int home = table_.home(0, key);
    const TableEntry& unit = table_.units().unit(0, key.micro_batch, key.slice);
    for (int device = 0; device < std::ssize(visits_); ++device) {
      if (device == home) continue;
      for (const OpKind kind : kOnStageZero) {
        if (seen(kind, home, device, key) == kNoCell) tell_missing(kind, home, key, 0);
      }
      for (const OpKind kind : kElsewhere) {
        const int other = is_embedding_transfer(kind) ? home : -1;
        if (seen(kind, device, other, key) == kNoCell) tell_missing(kind, device, key, 0);
      }
      need_done(seen(OpKind::ReceiveEmbedding, home, device, key), unit.forward);
      need_done(unit.gradient(), seen(OpKind::SendEmbeddingGradient, home, device, key));
      need_done(seen(OpKind::ReceiveEmbeddingGradient, device, home, key),
                seen(OpKind::EmbeddingGradient, device, -1, key));
    }
  }

  // Both are of one device.
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
  Visits visits_;
  std::vector<Knowledge> knowledge_;  // [device]
  std::map<Key, Cell> seen_;
};

}  // namespace

Visits find_bad_vocabulary(const OpTable& table, Findings& findings) {
  const bool any = std::ranges::any_of(table.program().devices, [](const DeviceProgram& device) {
    return std::ranges::any_of(device.ops, [](const Op& op) { return is_of_vocabulary(op.kind); });
  });
  if (!any) return Visits(table.program().devices.size());
  return Vocabulary(table, findings).find();
}

}  // namespace penstock::schedule
