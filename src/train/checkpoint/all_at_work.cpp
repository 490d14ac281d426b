// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/all_at_work.h"

#include "base/clock.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

constexpr Seconds kBetweenSigns = 0.25;
constexpr int kSignChannel = static_cast<int>(schedule::Channel::Control);

}  // namespace

AllAtWork::AllAtWork(comm::World world) : world_(world), told_(steady_seconds()) {
  const int first = world_->rank() == 0 ? 1 : 0, end = world_->rank() == 0 ? world_->size() : 1;
  for (int rank = first; rank < end; ++rank) told_ranks_.push_back(rank);
  latest_.resize(told_ranks_.size());
}

void AllAtWork::still_working() {
  static constexpr Word kStillWorking = Word::StillWorking;
  const Seconds now = steady_seconds();
  if (now - told_ < kBetweenSigns) return;
  told_ = now;
  for (std::size_t i = 0; i < told_ranks_.size(); ++i) {
    // A rank that has not received the last message yet needs no new one.
    if (latest_[i].test()) latest_[i] = tell(told_ranks_[i], kStillWorking);
  }
}

void AllAtWork::end() {
  static constexpr Word kDone = Word::Done;
  const bool first = world_->rank() == 0;
  if (first) {
    for (const int rank : told_ranks_) await_done(rank, [&] { still_working(); });
  }
  for (const int rank : told_ranks_) latest_.push_back(tell(rank, kDone));
  if (!first) await_done(0, [] {});
  comm::wait_all(latest_);
}

template <class Heard>
void AllAtWork::await_done(int rank, Heard&& heard) const {
  for (Word word = Word::StillWorking; word != Word::Done; heard())
    world_->receive(comm::writable_bytes_of(word), rank, kSignChannel).wait();
}

// `word` must outlive the request.
comm::Request AllAtWork::tell(int rank, const Word& word) const {
  return world_->send(comm::bytes_of(word), rank, kSignChannel);
}

}  // namespace penstock::train
