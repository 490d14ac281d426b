// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/exchange.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace penstock::schedule {
namespace {

Action action_of(const Op& op) {
  if (op.kind == OpKind::Forward) return forward(op.stage, op.micro_batch, op.slice);
  if (op.kind == OpKind::Backward) return backward(op.stage, op.micro_batch, op.slice);
  return backward_input(op.stage, op.micro_batch, op.slice);
}

// Work is counted in slices, which are of one length only where n is the same.
void require_one_n(const Program& program) {
  const auto [least, most] = std::ranges::minmax(program.slices);
  if (least == most) return;
  throw InputError("context exchange needs as many slices in every micro-batch; " + program.name +
                   " has from " + std::to_string(least) + " to " + std::to_string(most) +
                   ": use one n for all, or no exchange");
}

}  // namespace

std::vector<Help> find_help(const Program& program, const ContextExchange& exchange) {
  if (exchange.exchange == Exchange::Off) return {};
  const std::optional<SlotGrid> grid = find_slot_grid(program);
  if (!grid) {
    throw InputError(
        "context exchange needs slots in which all devices run forwards together, then backwards together; " +
        program.name + " has none: use slimpipe");
  }
  require_one_n(program);
  std::vector<Help> helps;
  for (const PlannedHelp& part : plan_exchange(program, *grid, exchange.exchange, exchange.limit).help) {
    Help& help = helps.emplace_back();
    help.of = action_of(program.devices[part.owner].ops[part.owner_op]);
    help.during = action_of(program.devices[part.helper].ops[part.helper_op]);
    help.owner = part.owner;
    help.helper = part.helper;
    help.first_half = part.first_half;
    help.halves = part.halves;
    if (!exchange.bytes) continue;
    const HelpBytes bytes = exchange.bytes(help);
    help.request = bytes.request;
    help.reply = bytes.reply;
  }
  return helps;
}

}  // namespace penstock::schedule
