// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <set>
#include <string>

#include "base/error.h"
#include "run/exchange.h"
#include "schedule/placement.h"

namespace penstock::train {
namespace {

// On every device a stage's first backward must come after its last forward.
void require_whole_steps(const run::Run& run) {
  if (run.options.moe.balance_over != "step") return;
  for (const schedule::DeviceProgram& list : run.program.devices) {
    std::set<int> gone_back;
    for (const schedule::Op& op : list.ops) {
      if (schedule::is_backward(op.kind)) gone_back.insert(op.key.stage);
      if (op.kind != schedule::OpKind::Forward || !gone_back.contains(op.key.stage)) continue;
      throw InputError(
          "moe.balance_over = \"step\" needs all forwards of a step before its first backward, as gpipe or "
          "breadth-first have them; " +
          run::name_of_schedule(run.options) + " does not: use moe.balance_over = \"micro_batch\"");
    }
  }
}

}  // namespace

void require_trainable(const run::Run& run) {
  require(!schedule::Placement(run.schedule).has_replicas(),
          run::name_of_schedule(run.options) +
              " keeps two copies of the parameters, which train cannot; use dualpipe-v");
  require(run.options.moe.rows_limit == 0,
          "moe.rows_limit = " + std::to_string(run.options.moe.rows_limit) +
              ": train dispatches all rows of a slice at once; use 0, and more slices for less memory");
  run::require_exchangeable(run);
  require_whole_steps(run);
}

}  // namespace penstock::train
