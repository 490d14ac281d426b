// SPDX-License-Identifier: Apache-2.0
// The resident set of this process as counted by the kernel, and its accounted parts.
#pragma once

#include <vector>

#include "backend/ledger.h"
#include "comm/groups.h"
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
  // All must outlive it. Products get their buffers here, so that they count as what is there before steps.
  ResidentAccount(const run::Run& run, const backend::Ledger& ledger, comm::World world);

  // Call before the first step: lets go of the program's pages that only the start needed, and predicts what
  // steps will have beside tensors. `pinned`: of this rank's room for records, what is resident already.
  void begin(Bytes pinned);

  // Call between two steps. Resident bytes that are neither tensors nor offloaded records nor copies of
  // states count as the libraries', when these have loaded everything: after the second step, or the only
  // one. `host`: this rank's peak of records in host memory, and the copies that it has made there.
  void note_step(Bytes host);

  // For every process, on all ranks. `checkpoint_copy` and `state_copies` are of this rank.
  std::vector<ResidentSummary> gather(Bytes checkpoint_copy, Bytes state_copies) const;

 private:
  void release_pages() const;  // of the process: by one of its ranks

  // Of this process: resident bytes that are neither tensors nor in `host` nor free for reuse.
  Bytes beside_tensors(Bytes host) const;

  const run::Run& run_;
  const backend::Ledger& ledger_;
  comm::World world_;
  Bytes at_start_ = 0;  // the peak before the first step
  Bytes predicted_libraries_ = 0, libraries_ = 0;
  int steps_ = 0;
};

}  // namespace penstock::train
