// SPDX-License-Identifier: Apache-2.0
// Base of the rules about one device's ops: the op being checked, and whether another op is done when it
// starts.
#pragma once

#include <string>

#include "schedule/check/findings.h"
#include "schedule/check/knowledge.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// Keeps references to the table and the findings, which must outlive it.
class DeviceJudge {
 public:
  DeviceJudge(const OpTable& table, int device, Findings& findings)
      : table_(table),
        device_(device),
        begin_(table.units().row_begin(device)),
        findings_(findings),
        knowledge_(table.program().devices[device]) {}

 protected:
  const Op& op_at(Cell cell) const { return table_.program().devices[device_].ops[cell - begin_]; }

  // Adds a finding unless `need` is done when the checked op starts. kNoCell needs nothing.
  void need_done(Cell need, Rule rule) {
    if (need == kNoCell || knowledge_.is_done(need - begin_, cell_ - begin_)) return;
    tell(rule, " may start before " + text_of(need) + " is done: it does not wait for it");
  }

  void tell(Rule rule, const std::string& reason) {
    if (!findings_.full()) findings_.add(table_.located(rule, cell_, reason));
  }

  std::string text_of(Cell cell) const {
    return table_.token(table_.op(cell)) + " (" + table_.where(cell) + ")";
  }

  const OpTable& table_;
  const int device_;
  const Cell begin_;
  Findings& findings_;
  Cell cell_ = 0;  // of the op being checked

 private:
  const Knowledge knowledge_;
};

}  // namespace penstock::schedule
