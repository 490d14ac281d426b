// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/ops.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/program_text.h"

namespace penstock::schedule {
namespace {

bool is_transfer(OpKind kind) { return is_send(kind) || is_receive(kind); }

Action action_of(const Op& op) {
  const Kind kind = op.group == mesh::Group::Pipeline ? action_kind(op.kind) : Kind::Idle;
  if (kind == Kind::Idle) return {};
  if (kind == Kind::ReduceGradients) return {.key = {.stage = op.key.stage}, .kind = kind};
  return {op.key, kind, false};
}

// Describes what is wrong with the op by itself; empty if nothing is.
std::string malformation(const Program& program, int device, std::uint32_t index) {
  const DeviceProgram& row = program.devices[device];
  const Op& op = row.ops[index];
  if (op.after_begin > row.after.size() || op.after_count > row.after.size() - op.after_begin) {
    return " waits for ops beyond the list of awaited ops";
  }
  for (const std::uint32_t earlier : row.after_of(op)) {
    if (earlier >= index)
      return " waits for op " + std::to_string(earlier) + ", which is not issued before it";
  }
  if (op.peer >= program.device_count())
    return " names device " + std::to_string(op.peer) + ", which does not exist";
  if (is_transfer(op.kind) && op.peer < 0) return " names no other device";
  if (op.peer == device) return " names its own device as the other one";
  if (op.group != mesh::Group::Pipeline && (op.peer >= 0 || !is_collective(op.kind)))
    return " is over the group " + std::string(mesh::name_of(op.group)) +
           ", which only a collective without a peer is";
  return {};
}

bool is_step(const Op& op) { return op.kind == OpKind::OptimizerStep; }

// STEP must be there, once, and after all computation.
void find_bad_step(const Program& program, int device, Findings& findings) {
  const std::vector<Op>& ops = program.devices[device].ops;
  const auto first = std::ranges::find_if(ops, is_step);
  if (first == ops.end()) {
    return findings.add(
        {Rule::Missing,
         device,
         -1,
         {},
         "STEP is missing: device " + std::to_string(device) + " never runs it, although other devices do"});
  }
  const auto later =
      std::find_if(first + 1, ops.end(), [](const Op& op) { return lane_of(op.kind) == Lane::Compute; });
  if (later == ops.end()) return;
  const auto position = static_cast<int>(later - ops.begin());
  findings.add({is_step(*later) ? Rule::Duplicate : Rule::Order, device, position, action_of(*later),
                place_text(device, position) + ": " + to_token(*later, is_sliced(program)) +
                    " runs after STEP (" + place_text(device, static_cast<int>(first - ops.begin())) +
                    "), which must come last"});
}

}  // namespace

Schedule actions_of(const Program& program) {
  Schedule schedule{.name = program.name, .stages = program.stages, .slices = program.slices, .devices = {}};
  for (const DeviceProgram& device : program.devices) {
    std::vector<Action>& row = schedule.devices.emplace_back();
    row.reserve(device.ops.size());
    for (const Op& op : device.ops) row.push_back(action_of(op));
  }
  return schedule;
}

void find_malformed(const Program& program, Findings& findings) {
  for (int device = 0; device < program.device_count(); ++device) {
    const std::vector<Op>& ops = program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size() && !findings.full(); ++i) {
      const std::string wrong = malformation(program, device, i);
      if (wrong.empty()) continue;
      const auto position = static_cast<int>(i);
      findings.add({Rule::Range, device, position, action_of(ops[i]),
                    place_text(device, position) + ": " + to_token(ops[i], is_sliced(program)) + wrong});
    }
  }
}

void find_bad_steps(const Program& program, Findings& findings) {
  const bool steps = std::ranges::any_of(
      program.devices, [](const DeviceProgram& device) { return std::ranges::any_of(device.ops, is_step); });
  if (!steps) return;
  for (int device = 0; device < program.device_count(); ++device) find_bad_step(program, device, findings);
}

Cell& UnitOps::of(OpKind kind) {
  switch (kind) {
    case OpKind::SendForward:
      return send_forward;
    case OpKind::ReceiveForward:
      return receive_forward;
    case OpKind::SendBackward:
      return send_backward;
    case OpKind::ReceiveBackward:
      return receive_backward;
    case OpKind::Offload:
      return offload;
    case OpKind::Reload:
      return reload;
    default:
      broken_invariant("a transfer or a copy", "compute ops are in the unit table", __FILE__, __LINE__);
  }
}

void OpTable::fill(Findings& findings) {
  ops_.assign(static_cast<std::size_t>(units_.extent().stages * units_.extent().slices()), {});
  for (int device = 0; device < program_.device_count(); ++device) {
    Cell cell = units_.row_begin(device);
    for (const Op& op : program_.devices[device].ops) {
      const Lane lane = lane_of(op.kind);
      const bool of_unit =
          lane != Lane::Compute && lane != Lane::Collective && !is_embedding_transfer(op.kind);
      if (of_unit) enter(op, device, cell, findings);
      ++cell;
    }
  }
}

void OpTable::enter(const Op& op, int device, Cell cell, Findings& findings) {
  if (findings.full()) return;
  if (!units_.extent().contains(op.key)) {
    findings.add(located(Rule::Range, cell, " names an action that no device runs"));
    return;
  }
  if (home(op.key) != device) {
    findings.add(located(
        Rule::Home, cell,
        " is here, but its stage runs on device " + std::to_string(home(op.key)) + " for this micro-batch"));
    return;
  }
  Cell& slot = ops_[units_.extent().index(op.key)].of(op.kind);
  if (slot != kNoCell) {
    findings.add(located(Rule::Duplicate, cell, " comes a second time, also at " + where(slot)));
  } else {
    slot = cell;
  }
}

int OpTable::home(const Key& key) const {
  if (key.stage < 0 || key.stage >= units_.extent().stages) return -1;
  return units_.place(units_.unit(key).forward).device;
}

const Op& OpTable::op(Cell cell) const {
  const CellPlace at = units_.place(cell);
  return program_.devices[at.device].ops[at.position];
}

std::string OpTable::token(const Op& op) const { return to_token(op, is_sliced(program_)); }

std::string OpTable::where(Cell cell) const {
  const CellPlace at = units_.place(cell);
  return place_text(at.device, at.position);
}

Finding OpTable::located(Rule rule, Cell cell, const std::string& reason) const {
  const CellPlace at = units_.place(cell);
  return {rule, at.device, at.position, action_of(op(cell)), where(cell) + ": " + token(op(cell)) + reason};
}

}  // namespace penstock::schedule
