// SPDX-License-Identifier: Apache-2.0
// Work on files that every rank does by itself and that takes one longer than another. It has no time limit
// but a wait for a message has (comm/communicator.h): so ranks keep telling one another that they are still
// working, and those that are done fail only when one falls silent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "comm/groups.h"

namespace penstock::train {

// Words go to the first rank and from it to all, so that there are few connections.
class AllAtWork {
 public:
  explicit AllAtWork(comm::World world);

  // Between parts of the work, each shorter than the limit of a wait.
  void still_working();

  // Waits until all ranks have come here. Collective; every rank calls it once, at last.
  void end();

 private:
  enum class Word : std::uint8_t { StillWorking, Done };

  comm::Request tell(int rank, const Word& word) const;
  template <class Heard>
  void await_done(int rank, Heard&& heard) const;

  comm::World world_;
  std::vector<int> told_ranks_;        // the first tells all others, and they tell the first
  std::vector<comm::Request> latest_;  // of the words to each of these
  Seconds told_;                       // when they were last told
};

}  // namespace penstock::train
