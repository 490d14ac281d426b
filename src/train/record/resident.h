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

// One rank's part of its process's account; ranks that are threads share a process. All calls are collective.
class ResidentAccount {
 public:
  // The arguments must outlive it. Allocates matrix products' buffers, so they count as present before steps.
  ResidentAccount(const run::Run& run, const backend::Ledger& ledger, comm::World world);

  // Call before the first step. Drops program pages that only the start needed, and predicts the steps'
  // memory other than tensors. `pinned`: bytes of this rank's room for records already resident.
  void begin(Bytes pinned);

  // Call between two steps. After the second (or only) step, when libraries have loaded everything, resident
  // bytes other than tensors, offloaded records and state copies count as the libraries'. `host`: this rank's
  // peak of records in host memory plus its state copies there.
  void note_step(Bytes host);

  // Returns one summary per process, on all ranks. `checkpoint_copy` and `state_copies` are this rank's.
  std::vector<ResidentSummary> gather(Bytes checkpoint_copy, Bytes state_copies) const;

 private:
  void release_pages() const;  // once per process

  // This process's resident bytes other than tensors, `host` and memory that is free for reuse.
  Bytes beside_tensors(Bytes host) const;

  const run::Run& run_;
  const backend::Ledger& ledger_;
  comm::World world_;
  Bytes at_start_ = 0;  // the peak before the first step
  Bytes predicted_libraries_ = 0, libraries_ = 0;
  int steps_ = 0;
};

}  // namespace penstock::train
