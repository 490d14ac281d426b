// SPDX-License-Identifier: Apache-2.0
// A program's ops beside the cells of its schedule: where the transfers and copies of every (stage,
// micro-batch, slice) are, and the rules that concern one op at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/table.h"
#include "schedule/program.h"

namespace penstock::schedule {

// The compute ops as actions and every other op as an idle cell, so that a cell is an op.
Schedule actions_of(const Program& program);

// Indices and peers that exist; the other rules rely on them. Range.
void find_malformed(const Program& program, Findings& findings);

// When any device has a STEP, each has one, and no compute comes after it. Missing, Duplicate, Order.
void find_bad_steps(const Program& program, Findings& findings);

// The ops of one (stage, micro-batch, slice) beside its actions.
struct UnitOps {
  Cell send_forward = kNoCell;
  Cell receive_forward = kNoCell;
  Cell send_backward = kNoCell;
  Cell receive_backward = kNoCell;
  Cell offload = kNoCell;
  Cell reload = kNoCell;

  Cell& of(OpKind kind);
};

// Refers to the program and the table, which must be free of findings.
class OpTable {
 public:
  OpTable(const Program& program, const UnitTable& units) : program_(program), units_(units) {}

  // Fills the table; ops of no unit of their device (Range, Home) and repeated ones (Duplicate) become
  // findings.
  void fill(Findings& findings);

  const Program& program() const { return program_; }
  const UnitTable& units() const { return units_; }

  // Of an op whose key is the schedule's.
  const UnitOps& ops(const Op& op) const { return ops_[units_.extent().index(op.key)]; }
  const TableEntry& unit(const Op& op) const { return units_.unit(op.key); }

  // The device that runs the stage for the op's micro-batch; -1 for a stage that is none.
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
