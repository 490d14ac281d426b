// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/check.h"

#include "base/error.h"
#include "schedule/check/collectives.h"
#include "schedule/check/complete.h"
#include "schedule/check/deadlock.h"
#include "schedule/check/exchange.h"
#include "schedule/check/messages.h"
#include "schedule/check/ops.h"
#include "schedule/check/order.h"
#include "schedule/check/program_run.h"
#include "schedule/check/vocabulary.h"
#include "schedule/check/waits.h"

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
    case Rule::Exchange:
      return "exchange";
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
    find_deadlock(*table, findings);  // a misordered action waits for itself: one finding is enough
  find_bad_reductions(*table, true, findings);
  return findings.take();
}

std::vector<Finding> check(const Program& program, std::size_t limit) {
  Findings findings(limit);
  find_malformed(program, findings);
  if (findings.count() > 0) return findings.take();
  const Schedule actions = actions_of(program);
  const std::optional<UnitTable> units = tabulate(actions, findings);
  if (!units) return findings.take();
  find_misordered(*units, findings);
  find_bad_reductions(*units, false, findings);
  find_bad_steps(program, findings);
  if (findings.count() > 0) return findings.take();  // the next rules rely on legal actions
  OpTable table(program, *units);
  table.fill(findings);
  if (findings.count() > 0) return findings.take();
  const Partners partners = match_messages(table, findings);
  find_unready(table, findings);
  find_bad_vocabulary(table, findings);
  find_bad_collectives(table, findings);
  const Meetings meetings = match_collectives(table, findings);
  find_bad_exchange(table, findings);
  if (findings.count() == 0) find_program_deadlock(table, partners, meetings, findings);
  return findings.take();
}

void require_legal(const Schedule& schedule) {
  const auto findings = check(schedule);
  if (findings.empty()) return;
  std::string message = schedule.name + ": not a legal schedule: " + findings.front().text;
  for (std::size_t i = 1; i < findings.size(); ++i) message += "\n  " + findings[i].text;
  throw NoAnswer(message);
}

void require_legal(const Program& program, const std::string& origin) {
  const auto findings = check(program, 1);
  if (!findings.empty()) throw InputError(origin + ": " + findings.front().text);
}

}  // namespace penstock::schedule
