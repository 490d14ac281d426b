// SPDX-License-Identifier: Apache-2.0
#include "schedule/program.h"

#include "base/error.h"

namespace penstock::schedule {

Lane lane_of(OpKind kind) {
  switch (kind) {
    case OpKind::SendForward:
    case OpKind::SendBackward:
      return Lane::Send;
    case OpKind::ReceiveForward:
    case OpKind::ReceiveBackward:
      return Lane::Receive;
    case OpKind::Offload:
      return Lane::CopyOut;
    case OpKind::Reload:
      return Lane::CopyIn;
    default:
      return Lane::Compute;
  }
}

Channel channel_of(OpKind kind) {
  switch (kind) {
    case OpKind::SendForward:
    case OpKind::ReceiveForward:
      return Channel::Forward;
    case OpKind::SendBackward:
    case OpKind::ReceiveBackward:
      return Channel::Backward;
    case OpKind::ReduceGradients:
      return Channel::Gradients;
    default:
      broken_invariant("op has a peer", "only transfers and reductions use a channel", __FILE__, __LINE__);
  }
}

std::uint32_t DeviceProgram::append(Op op, std::span<const std::uint32_t> waits) {
  const auto index = static_cast<std::uint32_t>(ops.size());
  op.after_begin = static_cast<std::uint32_t>(after.size());
  op.after_count = static_cast<std::uint32_t>(waits.size());
  for (const std::uint32_t wait : waits) {
    PENSTOCK_CHECK(wait < index, "an op waits only for ops issued before it");
    after.push_back(wait);
  }
  ops.push_back(op);
  return index;
}

}  // namespace penstock::schedule
