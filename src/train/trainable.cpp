// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include "base/error.h"
#include "schedule/placement.h"

namespace penstock::train {

void require_trainable(const run::Run& run) {
  const auto require_one = [](const char* key, std::int64_t value) {
    require(value == 1, std::string(key) + " = " + std::to_string(value) +
                            " can be planned and simulated, but not trained yet; use 1");
  };
  const run::ParallelOptions& parallel = run.options.parallel;
  require_one("parallel.dp", parallel.dp);
  require_one("parallel.cp", parallel.cp);
  require_one("parallel.tp", parallel.tp);
  require_one("parallel.ep", parallel.ep);
  require_one("model.experts", run.shape().experts);
  require(!schedule::Placement(run.schedule).has_replicas(),
          run::name_of_schedule(run.options) +
              " keeps two copies of the parameters, which train does not; use dualpipe-v");
}

}  // namespace penstock::train
