// SPDX-License-Identifier: Apache-2.0
// Work of rank 0 alone, such as writing what all send, or reading a checkpoint that only it sees. It may take
// any time, while a wait has a limit (comm/communicator.h): so rank 0 tells those that wait that it goes on,
// and only a rank that does nothing is given up.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "comm/groups.h"

namespace penstock::train {

class FirstAtWork {
 public:
  explicit FirstAtWork(comm::World world);

  // Of rank 0. goes_on() between parts of the work, each shorter than a wait may be, while all others wait
  // but `busy`, which it has called.
  void goes_on(int busy = 0);
  void call(int rank);
  void done();

  // Of the others, each of which waits for done() at the end.
  void await_call() { await(Word::Come); }
  void await_end() { await(Word::Done); }

 private:
  enum class Word : std::uint8_t { Wait, Come, Done };

  void tell(int rank, Word word);
  void await(Word wanted);

  comm::World world_;
  Seconds told_;  // when it last went on
};

}  // namespace penstock::train
