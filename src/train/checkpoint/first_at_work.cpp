// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/first_at_work.h"

#include "base/clock.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

constexpr Seconds kBetweenWords = 0.25;
constexpr int kWordChannel = static_cast<int>(schedule::Channel::Control);

}  // namespace

FirstAtWork::FirstAtWork(comm::World world) : world_(world), told_(steady_seconds()) {}

void FirstAtWork::goes_on(int busy) {
  const Seconds now = steady_seconds();
  if (now - told_ < kBetweenWords) return;
  told_ = now;
  for (int rank = 1; rank < world_->size(); ++rank) {
    if (rank != busy) tell(rank, Word::Wait);
  }
}

void FirstAtWork::call(int rank) { tell(rank, Word::Come); }

void FirstAtWork::done() {
  for (int rank = 1; rank < world_->size(); ++rank) tell(rank, Word::Done);
}

void FirstAtWork::tell(int rank, Word word) { world_->send(comm::bytes_of(word), rank, kWordChannel).wait(); }

void FirstAtWork::await(Word wanted) {
  for (Word word = Word::Wait; word != wanted;)
    world_->receive(comm::writable_bytes_of(word), 0, kWordChannel).wait();
}

}  // namespace penstock::train
