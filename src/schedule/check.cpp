// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include "schedule/check_complete.h"
#include "schedule/check_deadlock.h"
#include "schedule/check_order.h"

namespace penstock::schedule {

std::string_view name_of(Rule rule) {
  switch (rule) {
    case Rule::Missing:
      return "missing";
    case Rule::Duplicate:
      return "duplicate";
    case Rule::Mixed:
      return "mixed";
    case Rule::Range:
      return "range";
    case Rule::Home:
      return "home";
    case Rule::Order:
      return "order";
    case Rule::Deadlock:
      return "deadlock";
    case Rule::Unmatched:
      return "unmatched";
    case Rule::Residence:
      return "residence";
  }
  return "unknown";
}

std::vector<Finding> check(const Schedule& schedule, std::size_t limit) {
  Findings findings(limit);
  const std::optional<UnitTable> table = tabulate(schedule, findings);
  if (!table) return findings.take();
  const std::size_t before = findings.count();
  find_misordered(*table, findings);
  find_bad_overlaps(*table, findings);
  const bool is_ordered = findings.count() == before && !findings.full();
  if (is_ordered)
    find_deadlock(*table, findings);  // what is misordered waits for itself: one finding is enough
  find_bad_reductions(*table, findings);
  return findings.take();
}

}  // namespace penstock::schedule
