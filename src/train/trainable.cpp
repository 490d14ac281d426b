// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "schedule/placement.h"

namespace penstock::train {

void require_trainable(const run::Run& run) {
  const run::ParallelOptions& parallel = run.options.parallel;
  const std::pair<const char*, std::int64_t> sizes[] = {{"parallel.cp", parallel.cp},
                                                        {"parallel.tp", parallel.tp},
                                                        {"parallel.ep", parallel.ep},
                                                        {"model.experts", run.shape().experts}};
  std::vector<std::string> missing;
  for (const auto& [key, size] : sizes) {
    if (size != 1) missing.push_back(std::string(key) + " = " + std::to_string(size));
  }
  require(missing.empty(), join(missing, ", ") + " can be planned and simulated, but not trained yet; use 1");
  require(!schedule::Placement(run.schedule).has_replicas(),
          run::name_of_schedule(run.options) +
              " keeps two copies of the parameters, which train does not; use dualpipe-v");
}

}  // namespace penstock::train
