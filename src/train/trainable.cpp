// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <set>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "run/context.h"
#include "schedule/placement.h"

namespace penstock::train {
namespace {

// On every device the first backward of a stage has to come after the stage's last forward.
void require_whole_steps(const run::Run& run) {
  if (run.options.moe.balance_over != "step" || run.options.moe.balance_coefficient == 0) return;
  for (const schedule::DeviceProgram& list : run.program.devices) {
    std::set<int> gone_back;
    for (const schedule::Op& op : list.ops) {
      if (schedule::is_backward(op.kind)) gone_back.insert(op.key.stage);
      require(
          op.kind != schedule::OpKind::Forward || !gone_back.contains(op.key.stage),
          "moe.balance_over = \"step\" needs all forwards of a step before its first backward, as gpipe or "
          "breadth-first have them; " +
              run::name_of_schedule(run.options) + " has not: use moe.balance_over = \"micro_batch\"");
    }
  }
}

// Another rank attends for all heads of this one together, and these are of one shard.
void require_exchangeable(const run::Run& run) {
  require(
      run.mesh.context == 1 || run.options.parallel.cp_mode != "gather" ||
          run.exchange == schedule::ExchangeMode::Off,
      "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
          " moves attention to other devices, while parallel.cp_mode = \"gather\" keeps all keys on every "
          "context rank: use cp_mode = \"query\" or \"heads\", or schedule.exchange = \"off\"");
  require(run.options.data.mask != "documents" || run.exchange == schedule::ExchangeMode::Off ||
              !run::keys_in_two_runs(run.options),
          "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
              " with data.mask = \"documents\" needs keys that are one run of the sequence, which "
              "parallel.cp_mode = " +
              json_quote(run.options.parallel.cp_mode) +
              " cuts in two: use cp_mode = \"heads\", or schedule.exchange = \"off\"");
  const std::int64_t shards = run.shards_of_rank();
  require(shards == 1 || run.exchange == schedule::ExchangeMode::Off,
          "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
              " needs one logical shard on each tensor-parallel rank; numerics.tensor = " +
              std::to_string(run.tensor_shards()) +
              " over parallel.tp = " + std::to_string(run.options.parallel.tp) + " makes " +
              std::to_string(shards) + ": use numerics.tensor = " + std::to_string(run.options.parallel.tp) +
              ", or schedule.exchange = \"off\"");
}

}  // namespace

void require_trainable(const run::Run& run) {
  require(!schedule::Placement(run.schedule).has_replicas(),
          run::name_of_schedule(run.options) +
              " keeps two copies of the parameters, which train does not; use dualpipe-v");
  require(run.options.moe.rows_limit == 0,
          "moe.rows_limit = " + std::to_string(run.options.moe.rows_limit) +
              ": train dispatches all rows of a slice at once; use 0, and more slices for less memory");
  require_exchangeable(run);
  require_whole_steps(run);
}

}  // namespace penstock::train
