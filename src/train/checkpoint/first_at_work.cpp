// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/first_at_work.h"

#include "base/clock.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

constexpr Seconds kBetweenWords = 0.25;
constexpr int kWordChannel = static_cast<int>(schedule::Channel::Control);

}  // namespace

FirstAtWork::FirstAtWork(comm::World world)
    : world_(world), told_(static_cast<std::size_t>(world->size()), steady_seconds()) {}

// Keeps one time per rank: a rank whose turn has just ended was told nothing during its turn.
void FirstAtWork::still_working(int busy) {
  const Seconds now = steady_seconds();
  for (int rank = 1; rank < world_->size(); ++rank) {
    if (rank != busy && now - told_[static_cast<std::size_t>(rank)] >= kBetweenWords)
      tell(rank, Word::StillWorking);
  }
}

void FirstAtWork::give_turn(int rank) { tell(rank, Word::YourTurn); }

void FirstAtWork::done() {
  for (int rank = 1; rank < world_->size(); ++rank) tell(rank, Word::Done);
}

void FirstAtWork::tell(int rank, Word word) {
  world_->send(comm::bytes_of(word), rank, kWordChannel).wait();
  told_[static_cast<std::size_t>(rank)] = steady_seconds();
}

void FirstAtWork::await(Word wanted) {
  for (Word word = Word::StillWorking; word != wanted;)
    world_->receive(comm::writable_bytes_of(word), 0, kWordChannel).wait();
}

}  // namespace penstock::train
