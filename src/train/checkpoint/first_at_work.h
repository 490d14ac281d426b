// SPDX-License-Identifier: Apache-2.0
// Work of rank 0 alone, such as writing what all ranks send, or reading a checkpoint that only its host has.
// The work may take longer than a wait may (comm/communicator.h), so rank 0 sends the waiting ranks a word
// every quarter of a second; their waits run into the time limit only if it stops doing so.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "comm/groups.h"

namespace penstock::train {

class FirstAtWork {
 public:
  explicit FirstAtWork(comm::World world);

  // Called by rank 0. goes_on() is to be called between parts of the work, each shorter than a wait may be;
  // it sends the word to all ranks that wait, which is all but `busy`, the one that call() has called.
  void goes_on(int busy = 0);
  void call(int rank);
  void done();

  // Called by the other ranks, each of which ends with await_end().
  void await_call() { await(Word::Come); }
  void await_end() { await(Word::Done); }

 private:
  enum class Word : std::uint8_t { Wait, Come, Done };

  void tell(int rank, Word word);
  void await(Word wanted);

  comm::World world_;
  Seconds told_;  // when the last word was sent
};

}  // namespace penstock::train
