// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/waits.h"

#include <string>

#include "schedule/check/device_judge.h"

namespace penstock::schedule {
namespace {

// The stage at the other end of a transfer.
int other_stage(const Op& op) {
  return op.kind == OpKind::SendForward || op.kind == OpKind::ReceiveBackward ? op.key.stage + 1
                                                                              : op.key.stage - 1;
}

class DeviceWaits : DeviceJudge {
 public:
  using DeviceJudge::DeviceJudge;

  void find() {
    for (cell_ = begin_; cell_ < table_.units().row_end(device_) && !findings_.full(); ++cell_) {
      judge(op_at(cell_));
    }
  }

 private:
  void judge(const Op& op) {
    if (is_of_vocabulary(op.kind)) return;
    if (is_send(op.kind) || is_receive(op.kind)) judge_peer(op);
    switch (op.kind) {
      case OpKind::Forward:
        need_from(op, op.key.stage - 1, table_.ops(op).receive_forward, "RECV_F");
        break;
      case OpKind::Backward:
      case OpKind::BackwardInput:
        need_from(op, op.key.stage + 1, table_.ops(op).receive_backward, "RECV_B");
        need_resident(op);
        break;
      case OpKind::SendForward:
      case OpKind::Offload:
        need_done(table_.unit(op).forward, Rule::Order);
        break;
      case OpKind::SendBackward:
        need_done(table_.unit(op).gradient(), Rule::Order);
        break;
      case OpKind::Reload:
        need_offload(op);
        break;
      default:
        break;
    }
    if (op.kind == OpKind::Offload && table_.ops(op).reload == kNoCell) {
      tell(Rule::Residence, " takes the record away, but no RELOAD brings it back");
    }
  }

  void judge_peer(const Op& op) {
    const int home = table_.home(op.key.at_stage(other_stage(op)));
    if (home == op.peer) return;
    const std::string names = " names device " + std::to_string(op.peer) + ", but ";
    if (home < 0) {
      tell(Rule::Unmatched, names + "there is no stage " + std::to_string(other_stage(op)));
    } else {
      tell(Rule::Unmatched, names + "stage " + std::to_string(other_stage(op)) + " runs on device " +
                                std::to_string(home) + " for this micro-batch");
    }
  }

  // Checks the op's input from a neighbouring stage.
  void need_from(const Op& op, int stage, Cell receive, const std::string& word) {
    const int source = table_.home(op.key.at_stage(stage));
    if (source < 0 || source == device_) return;  // no input, or the order of the compute lane is enough
    if (receive != kNoCell) {
      need_done(receive, Rule::Order);
    } else {
      tell(Rule::Missing,
           " needs a result of device " + std::to_string(source) + ", but no " + word + " receives it");
    }
  }

  void need_resident(const Op& op) {
    const UnitOps& ops = table_.ops(op);
    if (ops.offload != kNoCell && ops.reload != kNoCell) need_done(ops.reload, Rule::Residence);
  }

  void need_offload(const Op& op) {
    const Cell offload = table_.ops(op).offload;
    if (offload != kNoCell) {
      need_done(offload, Rule::Residence);
    } else {
      tell(Rule::Residence, " brings back a record that no OFFLOAD took away");
    }
  }
};

}  // namespace

void find_unready(const OpTable& table, Findings& findings) {
  for (int device = 0; device < table.program().device_count(); ++device)
    DeviceWaits(table, device, findings).find();
}

}  // namespace penstock::schedule
