// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/complete.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "schedule/check/wording.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

template <typename Visit>
void for_each_contained(const UnitTable& table, const Findings& findings, Visit visit) {
  for (int device = 0; device < table.schedule().device_count(); ++device) {
    Cell cell = table.row_begin(device);
    for (const Action& action : table.schedule().devices[device]) {
      if (findings.full()) return;
      if (table.contains(action)) visit(action, device, cell);
      ++cell;
    }
  }
}

// Both a whole backward and half of a split one exist; the later of the two is at fault.
void tell_mixed(const Wording& wording, Cell whole, Cell half, Findings& findings) {
  const auto [first, second] = std::minmax(whole, half);
  findings.add(wording.located(Rule::Mixed, second,
                               " runs in addition to " + wording.token(first) + " (" + wording.where(first) +
                                   "): a backward is whole (B) or split (I and W)"));
}

bool is_elsewhere(const UnitTable& table, Cell cell, int device) {
  return cell < table.row_begin(device) || cell >= table.row_end(device);
}

bool has_other_action_on(const UnitTable& table, TableEntry unit, Kind but, int device) {
  unit.of(but) = kNoCell;
  return std::ranges::any_of(
      std::array{unit.forward, unit.backward, unit.input, unit.weight},
      [&](Cell cell) { return cell != kNoCell && !is_elsewhere(table, cell, device); });
}

struct Absent {
  Action action;
  Cell witness = kNoCell;  // an action of the same unit, on the device that should run the absent one
};

std::optional<Absent> first_absent(const TableEntry& unit, int stage, int j, int i) {
  const bool split = unit.input != kNoCell || unit.weight != kNoCell;
  if (unit.forward == kNoCell) return Absent{forward(stage, j, i), split ? unit.input : unit.backward};
  if (unit.backward != kNoCell) return std::nullopt;
  if (!split) return Absent{backward(stage, j, i), unit.forward};
  if (unit.input == kNoCell) return Absent{backward_input(stage, j, i), unit.weight};
  if (unit.weight == kNoCell) return Absent{backward_weight(stage, j, i), unit.input};
  return std::nullopt;
}

void tell_missing(const Wording& wording, const Absent& absent, Findings& findings) {
  std::string text = wording.token(absent.action) + " is missing: no device runs it";
  if (absent.witness != kNoCell) {
    text += ", while " + wording.token(absent.witness) + " runs on " + wording.where(absent.witness);
  }
  findings.add({Rule::Missing, -1, -1, absent.action, text});
}

// Returns true, and adds the first missing forwards, if there are too few actions for the numbers they name.
// A micro-batch may have lost all its slices.
bool find_sparse(const Schedule& schedule, const Extent& extent, Findings& findings) {
  std::vector<Action> forwards;
  std::int64_t cells = 0;
  for (const std::vector<Action>& row : schedule.devices) cells += std::ssize(row);
  if (extent.stages * std::max<std::int64_t>(extent.slices(), extent.micro_batches()) <= 4 * cells + 1024)
    return false;
  for (const std::vector<Action>& row : schedule.devices) {
    std::ranges::copy_if(row, std::back_inserter(forwards),
                         [](const Action& a) { return a.kind == Kind::Forward; });
  }
  std::ranges::sort(forwards);
  auto next = forwards.begin();
  for (int stage = 0; stage < extent.stages; ++stage) {
    for (int j = 0; j < extent.micro_batches(); ++j) {
      if (findings.full()) return true;
      for (int i = 0; i < extent.slices_of(j); ++i) {
        if (findings.full()) return true;
        const Action wanted = forward(stage, j, i);
        while (next != forwards.end() && *next < wanted) ++next;
        if (next != forwards.end() && next->key.stage == stage && next->key.micro_batch == j &&
            next->key.slice == i)
          continue;
        const std::string token = to_token(wanted, is_sliced(schedule));
        findings.add({Rule::Missing, -1, -1, wanted, token + " is missing: no device runs it"});
      }
    }
  }
  return true;
}

void find_duplicates(UnitTable& table, Findings& findings) {
  const Wording wording(table);
  for_each_contained(table, findings, [&](const Action& action, int device, Cell cell) {
    TableEntry& unit = table.unit(action.key);
    Cell& kept = unit.of(action.kind);
    if (kept != cell) {
      if (is_elsewhere(table, kept, device) && has_other_action_on(table, unit, action.kind, device)) {
        std::swap(kept, cell);
      }
      findings.add(
          wording.located(Rule::Duplicate, cell, " runs a second time, also at " + wording.where(kept)));
    } else if (action.kind == Kind::Backward) {
      for (const Cell half : {unit.input, unit.weight}) {
        if (half != kNoCell) tell_mixed(wording, cell, half, findings);
      }
    }
  });
}

void find_strays(const UnitTable& table, Findings& findings) {
  const Wording wording(table);
  const Extent& extent = table.extent();
  std::vector<Cell> homes(static_cast<std::size_t>(extent.stages) * extent.micro_batches(), kNoCell);
  for_each_contained(table, findings, [&](const Action& action, int device, Cell cell) {
    TableEntry unit = table.unit(action.key);
    if (unit.of(action.kind) != cell) return;  // a duplicate, reported already
    Cell& home =
        homes[static_cast<std::size_t>(action.key.stage) * extent.micro_batches() + action.key.micro_batch];
    if (home == kNoCell) home = cell;
    if (home >= table.row_begin(device)) return;
    findings.add(wording.located(Rule::Home, cell,
                                 " runs here, but " + wording.token(home) + " on " + wording.where(home) +
                                     ": a stage of a micro-batch lives on one device"));
  });
}

void find_missing(const UnitTable& table, Findings& findings) {
  const Wording wording(table);
  const Extent& extent = table.extent();
  for (int stage = 0; stage < extent.stages; ++stage) {
    for (int j = 0; j < extent.micro_batches(); ++j) {
      for (int i = 0; i < extent.slices_of(j); ++i) {
        if (findings.full()) return;
        if (const auto absent = first_absent(table.unit(make_key(stage, j, i)), stage, j, i)) {
          tell_missing(wording, *absent, findings);
        }
      }
    }
  }
  for (int device = 0; device < table.schedule().device_count(); ++device) {
    if (std::ranges::any_of(table.schedule().devices[device],
                            [](const Action& a) { return is_compute(a.kind); }))
      continue;
    findings.add({Rule::Missing,
                  device,
                  -1,
                  {},
                  "device " + std::to_string(device) + " runs nothing: its row holds no action"});
  }
}

}  // namespace

std::optional<UnitTable> tabulate(const Schedule& schedule, Findings& findings) {
  Extent extent = find_extent(schedule, findings);
  if (find_sparse(schedule, extent, findings)) return std::nullopt;
  UnitTable table(schedule, std::move(extent));
  find_duplicates(table, findings);
  find_strays(table, findings);
  find_missing(table, findings);
  return table;
}

}  // namespace penstock::schedule
