// SPDX-License-Identifier: Apache-2.0
// The resident set of this process, as the kernel counts it, beside what is accounted in it.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "model/memory_table.h"
#include "nn/ledger.h"
#include "train/metrics.h"

namespace penstock::train {

struct Resident {
  Bytes now = 0;
  Bytes peak = 0;  // since the process began
};

// Zeros where the system does not tell.
Resident resident_memory();

// What one rank adds to the account of its process; ranks that are threads share one. All calls are
// collective.
class ResidentAccount {
 public:
  // `ledger` and `pipeline` must outlive it.
  ResidentAccount(const nn::Ledger& ledger, comm::Communicator& pipeline)
      : ledger_(ledger), pipeline_(pipeline) {}

  // Between two steps. The first one has brought in what libraries load late: what is resident after it and
  // is neither a tensor nor an offloaded record is theirs. `host` is what this rank had away in the host's
  // memory at most.
  void note_step(Bytes host);

  // Of every process, on all ranks. `predicted` is of all devices, `checkpoint_copy` of this rank.
  std::vector<ResidentSummary> gather(const model::MemoryTable& predicted, Bytes checkpoint_copy) const;

 private:
  const nn::Ledger& ledger_;
  comm::Communicator& pipeline_;
  Bytes libraries_ = 0;
};

}  // namespace penstock::train
