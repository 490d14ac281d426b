// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/unit.h"

#include <utility>

namespace penstock::sim {

using schedule::Op;
using schedule::OpKind;

UnitCosts::UnitCosts(const UnitTimes& times, const RecordBytes& record, std::vector<int> slices)
    : times_(times), slices_(std::move(slices)), record_(record) {
  checked_seconds("--forward", times.forward);
  checked_seconds("--backward", times.backward);
  checked_seconds("--input", times.input);
  checked_seconds("--weight", times.weight);
  checked_seconds("--transfer", times.transfer);
  checked_seconds("--copy", times.copy);
  checked_seconds("--visit", times.visit);
}

Seconds UnitCosts::mean(OpKind kind) const {
  switch (kind) {
    case OpKind::Forward:
      return times_.forward;
    case OpKind::Backward:
      return times_.backward;
    case OpKind::BackwardInput:
      return times_.input;
    default:
      return times_.weight;
  }
}

AttentionShare UnitCosts::attention(int, std::uint32_t, const Op& op) const {
  AttentionShare share{.layers = times_.layers};
  const auto micro_batch = static_cast<std::size_t>(op.key.micro_batch);
  const bool attends = is_action(op.kind) && op.kind != OpKind::BackwardWeight;
  if (!attends || micro_batch >= slices_.size()) return share;
  share.seconds = mean(op.kind) * times_.attention * (2 * op.key.slice + 1) / slices_[micro_batch];
  return share;
}

Seconds UnitCosts::seconds(int device, std::uint32_t index, const Op& op) const {
  if (is_action(op.kind)) {
    const AttentionShare share = attention(device, index, op);
    const bool attends = share.seconds > 0;
    return attends ? mean(op.kind) * (1 - times_.attention) + share.seconds : mean(op.kind);
  }
  switch (op.kind) {
    case OpKind::Offload:
    case OpKind::Reload:
      return record_.record > 0
                 ? times_.copy * static_cast<double>(op.bytes) / static_cast<double>(record_.record)
                 : 0;
    case OpKind::VocabularyLoss:
      return times_.visit;
    default:
      return 0;
  }
}

Transfer UnitCosts::transfer(int, std::uint32_t, const Op&) const { return {0, times_.transfer}; }

RecordBytes UnitCosts::record(const schedule::Key&) const { return record_; }

}  // namespace penstock::sim
