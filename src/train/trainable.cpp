// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "schedule/placement.h"

namespace penstock::train {
namespace {

// Another rank attends for all heads of this one together, and these are of one shard.
void require_exchangeable(const run::Run& run) {
  require(
      run.mesh.context == 1 || run.options.parallel.cp_mode != "gather" ||
          run.exchange == schedule::ExchangeMode::Off,
      "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
          " moves attention to other devices, while parallel.cp_mode = \"gather\" keeps all keys on every "
          "context rank: use cp_mode = \"query\" or \"heads\", or schedule.exchange = \"off\"");
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
  const run::ParallelOptions& parallel = run.options.parallel;
  const std::pair<const char*, std::int64_t> sizes[] = {{"parallel.ep", parallel.ep},
                                                        {"model.experts", run.shape().experts}};
  std::vector<std::string> missing;
  for (const auto& [key, size] : sizes) {
    if (size != 1) missing.push_back(std::string(key) + " = " + std::to_string(size));
  }
  require(!run.shape().head_norms,
          "model.head_norms = true can be planned and simulated, but not trained yet; use false");
  require(missing.empty(), join(missing, ", ") + " can be planned and simulated, but not trained yet; use 1");
  require(!schedule::Placement(run.schedule).has_replicas(),
          run::name_of_schedule(run.options) +
              " keeps two copies of the parameters, which train does not; use dualpipe-v");
  require_exchangeable(run);
}

}  // namespace penstock::train
