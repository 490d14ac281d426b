// SPDX-License-Identifier: Apache-2.0
// The resident set of this process as counted by the kernel, and its accounted parts.
#pragma once

#include <vector>

#include "comm/groups.h"
#include "nn/memory/ledger.h"
#include "run/run.h"
#include "train/record/metrics.h"

namespace penstock::train {

struct Resident {
  Bytes now = 0;
  Bytes peak = 0;  // since the process began
};

// Zeros where the system does not report them.
Resident resident_memory();

// One rank's part in the account of its process; ranks that are threads share one. All calls are collective.
class ResidentAccount {
 public:
  // The ledger and the communicator must outlive it.
  ResidentAccount(const nn::Ledger& ledger, comm::World world) : ledger_(ledger), world_(world) {}

  // Call between two steps. After the first, when libraries have loaded everything, resident bytes that are
  // neither tensors nor offloaded records count as theirs. `host`: this rank's peak of records in host
  // memory.
  void note_step(Bytes host);

  // For every process, on all ranks. `checkpoint_copy` is of this rank.
  std::vector<ResidentSummary> gather(const run::Run& run, Bytes checkpoint_copy) const;

 private:
  const nn::Ledger& ledger_;
  comm::World world_;
  Bytes libraries_ = 0;
};

}  // namespace penstock::train
