// SPDX-License-Identifier: Apache-2.0
// Work of rank 0 alone, such as writing what all ranks send, or reading a checkpoint that only it sees. The
// work has no time limit, but a wait for a message has one (comm/communicator.h). So rank 0 keeps telling the
// waiting ranks that it is still working, and they fail only if it falls silent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "comm/groups.h"

namespace penstock::train {

class FirstAtWork {
 public:
  explicit FirstAtWork(comm::World world);

  // For rank 0. Call still_working() between parts of the work, each shorter than the limit of a wait.
  // `busy`: the rank whose turn it is, which does not wait meanwhile (0: all others wait).
  void still_working(int busy = 0);
  void give_turn(int rank);
  void done();

  // For the other ranks. Each calls await_end() as its last call.
  void await_turn() { await(Word::YourTurn); }
  void await_end() { await(Word::Done); }

 private:
  enum class Word : std::uint8_t { StillWorking, YourTurn, Done };

  void tell(int rank, Word word);
  void await(Word wanted);

  comm::World world_;
  std::vector<Seconds> told_;  // when each rank was last told anything
};

}  // namespace penstock::train
