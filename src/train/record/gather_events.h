// SPDX-License-Identifier: Apache-2.0
// Gathers measurements: of a pipeline on its rank 0, all ranks' events on the world's rank 0, and peaks on
// every rank.
#pragma once

#include <vector>

#include "backend/ledger.h"
#include "comm/groups.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/record/metrics.h"

namespace penstock::train {

// Returns the timeline of one step on rank 0; empty on the others. `mine`: this rank's events, one per op of
// its list; `exchange`: its exchange spans. Collective.
schedule::Timeline gather_events(const schedule::Program& program, const std::vector<schedule::Event>& mine,
                                 const std::vector<schedule::ExchangeSpan>& exchange,
                                 comm::Pipeline pipeline);

// Returns the events of every rank of the mesh on rank 0 of the world, if several ranks form one pipeline
// device; else empty. Collective.
std::vector<std::vector<schedule::Event>> gather_rank_events(const std::vector<schedule::Event>& mine,
                                                             const mesh::Mesh& mesh, comm::World world);

// Peak offloaded bytes.
struct AwayBytes {
  Bytes host = 0;
  Bytes disk = 0;
};

// Peak bytes of each device by category, "total" (the peak of their sum), and "host" and "disk", which are
// not part of it: of each the greatest among the device's ranks, as predictions have their longest shares.
// Returned on all ranks. Collective.
std::vector<BytesByCategory> gather_peaks(const mesh::Mesh& mesh, const backend::Ledger& mine,
                                          const AwayBytes& away, comm::World world);

}  // namespace penstock::train
