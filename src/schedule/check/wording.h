// SPDX-License-Identifier: Apache-2.0
// How findings name the cells of a schedule.
#pragma once

#include <string>

#include "schedule/check/findings.h"
#include "schedule/check/table.h"
#include "schedule/text.h"

namespace penstock::schedule {

class Wording {
 public:
  explicit Wording(const UnitTable& table) : table_(table), sliced_(is_sliced(table.schedule())) {}

  std::string token(const Action& action) const { return to_token(action, sliced_); }
  std::string token(Cell cell) const { return token(table_.action(cell)); }

  std::string where(Cell cell) const {
    const CellPlace at = table_.place(cell);
    return place_text(at.device, at.position);
  }

  // "device 1, position 5: 1F2" + the reason.
  Finding located(Rule rule, Cell cell, const std::string& reason) const {
    const CellPlace at = table_.place(cell);
    return {rule, at.device, at.position, table_.action(cell), where(cell) + ": " + token(cell) + reason};
  }

 private:
  const UnitTable& table_;
  bool sliced_;
};

}  // namespace penstock::schedule
