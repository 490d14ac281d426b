// SPDX-License-Identifier: Apache-2.0
// A table of a program's ops: the transfers and copies of every (stage, micro-batch, slice), and the rules
// that concern one op at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/table.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Returns a schedule with the compute ops as actions and every other op as an idle cell: cells number ops.
Schedule actions_of(const Program& program);

// Adds a finding (Range) for indices or peers that do not exist; the other rules rely on this one.
void find_malformed(const Program& program, Findings& findings);

// Rule: if any device has a STEP, each has one, and no compute follows it. Adds Missing, Duplicate, Order.
void find_bad_steps(const Program& program, Findings& findings);

// The ops of one (stage, micro-batch, slice) other than its actions.
struct UnitOps {
  Cell send_forward = kNoCell;
  Cell receive_forward = kNoCell;
  Cell send_backward = kNoCell;
  Cell receive_backward = kNoCell;
  Cell offload = kNoCell;
  Cell reload = kNoCell;

  Cell& of(OpKind kind);
};

// Keeps references to the program and the table, which must be free of findings.
class OpTable {
 public:
  OpTable(const Program& program, const UnitTable& units) : program_(program), units_(units) {}

  // Fills the table. Adds findings for ops whose unit does not exist (Range) or is on another device (Home),
  // and for repeated ops (Duplicate).
  void fill(Findings& findings);

  const Program& program() const { return program_; }
  const UnitTable& units() const { return units_; }

  // The op's key must be in the schedule.
  const UnitOps& ops(const Op& op) const { return ops_[units_.extent().index(op.key)]; }
  const TableEntry& unit(const Op& op) const { return units_.unit(op.key); }

  // The device that runs the key's stage for its micro-batch; -1 if there is no such stage.
  int home(const Key& key) const;

  const Op& op(Cell cell) const;
  std::string token(const Op& op) const;
  std::string where(Cell cell) const;
  Finding located(Rule rule, Cell cell, const std::string& reason) const;

 private:
  void enter(const Op& op, int device, Cell cell, Findings& findings);

  const Program& program_;
  const UnitTable& units_;
  std::vector<UnitOps> ops_;
};

}  // namespace penstock::schedule
