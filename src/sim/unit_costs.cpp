// SPDX-License-Identifier: Apache-2.0
#include "sim/unit_costs.h"

namespace penstock::sim {

using schedule::Op;
using schedule::OpKind;

UnitCosts::UnitCosts(const UnitTimes& times, const RecordBytes& record) : times_(times), record_(record) {
  checked_seconds("--forward", times.forward);
  checked_seconds("--backward", times.backward);
  checked_seconds("--input", times.input);
  checked_seconds("--weight", times.weight);
  checked_seconds("--transfer", times.transfer);
  checked_seconds("--copy", times.copy);
  checked_seconds("--visit", times.visit);
}

Seconds UnitCosts::seconds(int, std::uint32_t, const Op& op) const {
  switch (op.kind) {
    case OpKind::Forward:
      return times_.forward;
    case OpKind::Backward:
      return times_.backward;
    case OpKind::BackwardInput:
      return times_.input;
    case OpKind::BackwardWeight:
      return times_.weight;
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

RecordBytes UnitCosts::record(int, int, int) const { return record_; }

}  // namespace penstock::sim
