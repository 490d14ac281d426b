// SPDX-License-Identifier: Apache-2.0
#include "sim/deadlock.h"

#include <algorithm>

#include "schedule/program_text.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::Program;

std::string token(const Program& program, const Op& op) { return to_token(op, is_sliced(program)); }

std::string sentence(const Program& program, const Stall& stall) {
  const std::vector<Op>& ops = program.devices[stall.device].ops;
  const Op& waited = ops[stall.waits_for];
  std::string text = "device " + std::to_string(stall.device) + " waits at op " + std::to_string(stall.op) +
                     ", " + token(program, ops[stall.op]);
  if (stall.op != stall.waits_for) text += ", for " + token(program, waited);
  if (waited.peer >= 0)
    text += (is_receive(waited.kind) ? " from device " : " with device ") + std::to_string(waited.peer);
  return text;
}

// The device that the stall waits for, -1 if none; for a collective of all, the first that has not arrived.
int next_device(const Program& program, const std::vector<Stall>& stalls, const Stall& stall) {
  const auto waited = [&](const Stall& of) -> const Op& {
    return program.devices[of.device].ops[of.waits_for];
  };
  const Op& op = waited(stall);
  if (op.peer >= 0 || !is_collective(op.kind)) return op.peer;
  for (int device = 0; device < program.device_count(); ++device) {
    const auto other = std::ranges::find(stalls, device, &Stall::device);
    if (other == stalls.end() || waited(*other).kind != op.kind) return device;
  }
  return -1;
}

}  // namespace

Deadlock describe(const Program& program, std::vector<Stall> stalls) {
  std::string text = "deadlock: ";
  std::vector<int> seen;
  for (int device = stalls.front().device;;) {
    const auto stall = std::ranges::find(stalls, device, &Stall::device);
    if (stall == stalls.end()) {
      text += "; device " + std::to_string(device) + " is done";
      break;
    }
    text += (seen.empty() ? "" : "; ") + sentence(program, *stall);
    seen.push_back(device);
    device = next_device(program, stalls, *stall);
    if (device < 0 || std::ranges::find(seen, device) != seen.end()) break;
  }
  return {std::move(stalls), std::move(text)};
}

}  // namespace penstock::sim
