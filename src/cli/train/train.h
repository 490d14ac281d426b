// SPDX-License-Identifier: Apache-2.0
// penstock train: trains a run file as a rank of mpirun, as threads of one process, or alone.
#pragma once

#include "base/error.h"
#include "cli/train/resolve_run.h"

namespace penstock::cli {

struct TrainFlags {
  RunSource source;
  int ranks = 1;
  bool print_config = false;
  bool dry_run = false;
  bool profile = false;
  std::int64_t sample = 0;
};

Exit train(const TrainFlags& flags);

}  // namespace penstock::cli
