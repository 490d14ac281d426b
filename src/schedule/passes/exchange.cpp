// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/exchange.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace penstock::schedule {
namespace {

Action computed_action(const Op& op) {
  if (op.kind == OpKind::Forward) return {op.key, Kind::Forward};
  return {op.key, op.kind == OpKind::Backward ? Kind::Backward : Kind::BackwardInput};
}

// Work is counted in slices, which have equal lengths only if n is the same everywhere.
void require_one_n(const Program& program) {
  const auto [least, most] = std::ranges::minmax(program.slices);
  if (least == most) return;
  throw InputError("context exchange needs the same number of slices in every micro-batch; " + program.name +
                   " has from " + std::to_string(least) + " to " + std::to_string(most) +
                   ": use one n for all, or no exchange");
}

}  // namespace

std::vector<Exchange> find_exchanges(const Program& program, const ContextExchange& wanted) {
  if (wanted.mode == ExchangeMode::Off) return {};
  const std::optional<SlotGrid> grid = find_slot_grid(program);
  if (!grid) {
    throw InputError(
        "context exchange needs slots in which all devices run forwards together, then backwards together; " +
        program.name + " has none: use slimpipe");
  }
  if (!wanted.work) require_one_n(program);
  std::vector<Exchange> exchanges;
  for (const PlannedExchange& part :
       plan_exchange(program, *grid, wanted.mode, wanted.limit, wanted.work).exchanges) {
    Exchange& exchange = exchanges.emplace_back();
    exchange.of = computed_action(program.devices[part.owner].ops[part.owner_op]);
    exchange.during = computed_action(program.devices[part.partner].ops[part.partner_op]);
    exchange.owner = part.owner;
    exchange.partner = part.partner;
    exchange.first_half = part.first_half;
    exchange.halves = part.halves;
    if (!wanted.bytes) continue;
    const ExchangeBytes bytes = wanted.bytes(exchange);
    exchange.request = bytes.request;
    exchange.reply = bytes.reply;
  }
  return exchanges;
}

}  // namespace penstock::schedule
