// SPDX-License-Identifier: Apache-2.0
// File work that every rank does by itself and that may take some ranks longer. The work has no time limit,
// but a wait for a message has one (comm/communicator.h). So ranks keep sending signs that they are still
// working, and ranks that are done fail only if another one falls silent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "comm/groups.h"

namespace penstock::train {

// Messages go to rank 0 and from it to all, so that there are few connections.
class AllAtWork {
 public:
  explicit AllAtWork(comm::World world);

  // Call between parts of the work, each shorter than the limit of a wait.
  void still_working();

  // Waits until all ranks have called it. Collective; every rank calls it once, as its last call.
  void end();

 private:
  enum class Word : std::uint8_t { StillWorking, Done };

  comm::Request tell(int rank, const Word& word) const;
  template <class Heard>
  void await_done(int rank, Heard&& heard) const;

  comm::World world_;
  std::vector<int> told_ranks_;        // rank 0 tells all others, and they tell rank 0
  std::vector<comm::Request> latest_;  // latest message to each of told_ranks_
  Seconds told_;                       // when they were last told
};

}  // namespace penstock::train
