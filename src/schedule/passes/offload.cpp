// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/offload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "schedule/passes/rewriter.h"
#include "schedule/program_index.h"

namespace penstock::schedule {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
constexpr std::uint32_t kStep = 4;  // compute ops: F and B of neighbouring records, twice

// Where one record leaves and comes back, as indices into its device's list.
struct Absence {
  Bytes bytes = 0;
  std::uint32_t forward = 0;
  std::uint32_t release = 0;  // this op waits for the OFFLOAD
  std::uint32_t before = 0;   // RELOAD waits for this op
  std::uint32_t recall = 0;   // RELOAD is issued just before this op, the next one
  std::uint32_t backward = 0;
};

// The compute ops of a list. Vocabulary messages are left out: they and copies never wait for each other.
struct ComputeOps {
  std::vector<Op> ops;
  std::vector<std::uint32_t> places;    // [index into ops] index into the list
  std::vector<std::uint32_t> position;  // [index into the list] index into ops; for a message the next one's

  explicit ComputeOps(const DeviceProgram& device) {
    for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
      const Op& op = device.ops[i];
      PENSTOCK_CHECK(is_action(op.kind) || is_of_vocabulary(op.kind),
                     "offloading is decided before transfers and reductions are added");
      position.push_back(static_cast<std::uint32_t>(ops.size()));
      if (lane_of(op.kind) != Lane::Compute) continue;
      ops.push_back(op);
      places.push_back(i);
    }
  }
};

int peak_in_flight(const std::vector<Op>& ops) {
  int held = 0;
  int peak = 0;
  for (const Op& op : ops) {
    if (op.kind == OpKind::Forward) peak = std::max(peak, ++held);
    if (is_backward(op.kind)) --held;
  }
  return peak;
}

// For each op, the second forward after it; the end of the list if there is none.
std::vector<std::uint32_t> second_next_forwards(const std::vector<Op>& ops) {
  const auto end = static_cast<std::uint32_t>(ops.size());
  std::vector<std::uint32_t> found(end);
  std::uint32_t next = end;
  std::uint32_t second = end;
  for (std::uint32_t i = end; i-- > 0;) {
    found[i] = second;
    if (ops[i].kind == OpKind::Forward) second = std::exchange(next, i);
  }
  return found;
}

// For each op, the backward before it; 0 if there is none.
std::vector<std::uint32_t> backwards_before(const std::vector<Op>& ops) {
  std::vector<std::uint32_t> found;
  std::uint32_t latest = 0;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    found.push_back(latest);
    if (is_backward(ops[i].kind)) latest = i;
  }
  return found;
}

// Returns the absences in the order of their forwards.
std::vector<Absence> absences(const DeviceProgram& device, int number, const ProgramIndex& index,
                              const OffloadBytes& bytes) {
  std::vector<Absence> found;
  const ComputeOps computing(device);
  const std::vector<Op>& ops = computing.ops;
  if (peak_in_flight(ops) <= kResidentRecords) return found;
  const std::vector<std::uint32_t> second_next = second_next_forwards(ops);
  const std::vector<std::uint32_t> before = backwards_before(ops);
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::Forward) continue;
    const Place place = index.backward(ops[i].key);
    PENSTOCK_CHECK(place.device == number, "a record is used where it was made: check() the program first");
    const std::uint32_t backward = computing.position[place.op];
    if (backward - i <= kStep + 1) continue;
    const std::uint32_t release = std::min(second_next[i], i + kStep);
    const std::uint32_t recall = std::max({before[backward], backward - kStep, release + 1});
    const Absence absence{.bytes = bytes(ops[i].key),
                          .forward = computing.places[i],
                          .release = computing.places[release],
                          .before = computing.places[recall - 1],
                          .recall = computing.places[recall],
                          .backward = place.op};
    if (absence.bytes > 0) found.push_back(absence);
  }
  return found;
}

Op copy_op(OpKind kind, const Op& record, Bytes bytes) {
  return {.key = record.key, .kind = kind, .bytes = bytes};
}

class DeviceRewrite {
 public:
  DeviceRewrite(const DeviceProgram& source, std::vector<Absence> absences)
      : source_(source),
        absences_(std::move(absences)),
        leaves_(source.ops.size(), kNone),
        copies_of_(absences_.size()),
        recalled_(source.ops.size(), kNone),
        waits_(source.ops.size()),
        rewriter_(source, 2 * absences_.size()) {
    for (std::uint32_t a = 0; a < absences_.size(); ++a) {
      leaves_[absences_[a].forward] = a;
      PENSTOCK_CHECK(recalled_[absences_[a].recall] == kNone, "backwards follow one another");
      recalled_[absences_[a].recall] = a;
    }
  }

  DeviceProgram finish() {
    for (std::uint32_t i = 0; i < source_.ops.size(); ++i) {
      if (recalled_[i] != kNone) reload(recalled_[i]);
      const std::uint32_t kept = rewriter_.keep_next(waits_[i]);
      if (leaves_[i] != kNone) offload(leaves_[i], i, kept);
    }
    return rewriter_.take();
  }

 private:
  void offload(std::uint32_t a, std::uint32_t forward, std::uint32_t kept) {
    const Absence& absence = absences_[a];
    copies_of_[a] =
        rewriter_.insert(copy_op(OpKind::Offload, source_.ops[forward], absence.bytes), {&kept, 1});
    waits_[absence.release].push_back(copies_of_[a]);
  }

  void reload(std::uint32_t a) {
    const Absence& absence = absences_[a];
    const std::uint32_t waits[] = {rewriter_.moved_to(absence.before), copies_of_[a]};
    const Op& record = source_.ops[absence.forward];
    waits_[absence.backward].push_back(
        rewriter_.insert(copy_op(OpKind::Reload, record, absence.bytes), waits));
  }

  const DeviceProgram& source_;
  std::vector<Absence> absences_;
  std::vector<std::uint32_t> leaves_;              // [source op] the absence that begins after it
  std::vector<std::uint32_t> copies_of_;           // [absence] its OFFLOAD in the result
  std::vector<std::uint32_t> recalled_;            // [source op] the absence whose RELOAD comes before it
  std::vector<std::vector<std::uint32_t>> waits_;  // [source op] copies it waits for, in the result
  Rewriter rewriter_;
};

}  // namespace

Program add_offload(const Program& program, const OffloadBytes& bytes) {
  if (!bytes) return program;
  const ProgramIndex index(program);
  Program result{program.name, program.stages, program.slices, {}};
  for (int device = 0; device < program.device_count(); ++device) {
    const DeviceProgram& list = program.devices[device];
    result.devices.push_back(DeviceRewrite(list, absences(list, device, index, bytes)).finish());
  }
  return result;
}

}  // namespace penstock::schedule
