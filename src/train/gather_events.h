// SPDX-License-Identifier: Apache-2.0
// What every rank measured, brought together on rank 0.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "nn/ledger.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/metrics.h"
#include "train/op_memory.h"

namespace penstock::train {

// The timeline of one step on rank 0, from each rank's own events (one per op of its list) and spans of help;
// empty on the others. Collective.
schedule::Timeline gather_events(const schedule::Program& program, const std::vector<schedule::Event>& mine,
                                 const std::vector<schedule::HelpSpan>& help, comm::Communicator& pipeline);

// What each rank held at the ends of its compute ops, on rank 0; empty on the others. Collective.
std::vector<std::vector<OpMemory>> gather_memory(const schedule::Program& program,
                                                 const std::vector<OpMemory>& mine,
                                                 comm::Communicator& pipeline);

// Processor seconds of each rank's ops, on rank 0; empty on the others. Collective.
std::vector<std::vector<Seconds>> gather_processor_seconds(const schedule::Program& program,
                                                           const std::vector<Seconds>& mine,
                                                           comm::Communicator& pipeline);

// Offloaded bytes at their most.
struct AwayBytes {
  Bytes host = 0;
  Bytes disk = 0;
};

// Peak bytes of each rank by category, "total" (the greatest sum at one time), and "host" and "disk", which
// are not part of it. On all ranks. Collective.
std::vector<BytesByCategory> gather_peaks(const nn::Ledger& mine, const AwayBytes& away,
                                          comm::Communicator& pipeline);

}  // namespace penstock::train
