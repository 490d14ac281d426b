// SPDX-License-Identifier: Apache-2.0
#include "comm/mailbox.h"

#include <algorithm>
#include <cstring>

#include "comm/communicator.h"

namespace penstock::comm {
namespace {

// Returns the point after the copy. Copies nothing if the lengths differ; the receiver reports that.
backend::DeviceMemory::Point copy_between(const Side& sender, const Side& receiver) {
  if (sender.bytes != receiver.bytes || sender.bytes == 0) return {};
  if (!sender.ready && !receiver.ready) {
    std::memcpy(receiver.room, sender.source, sender.bytes);
    return {};
  }
  backend::DeviceMemory& device = *backend::device_memory();
  for (const Side* side : {&sender, &receiver}) {
    if (side->ready) device.come_behind(side->ready);
  }
  device.copy(receiver.room, sender.source, sender.bytes);
  auto copied = device.point();
  const bool both = sender.ready && receiver.ready;
  if (!both) device.wait_for(copied);  // the host side does not follow the GPU's order
  return copied;
}

}  // namespace

void Mailbox::post(const Queue& queue, Side& side) {
  std::unique_lock lock(mutex_);
  std::deque<Side*>& waiting = waiting_[queue];
  if (waiting.empty() || waiting.front()->sending == side.sending) {
    waiting.push_back(&side);
    return;
  }
  Side& other = *waiting.front();
  waiting.pop_front();
  other.phase = Side::Phase::Copying;
  lock.unlock();  // the copy does not block other messages of this mailbox
  backend::DeviceMemory::Point copied;
  try {
    copied = side.sending ? copy_between(side, other) : copy_between(other, side);
  } catch (...) {  // this rank fails; the other one waits until it hears of that
    lock.lock();
    other.phase = Side::Phase::Waiting;
    waiting.push_front(&other);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  side.copied = other.copied = std::move(copied);
  side.arrived = other.bytes;
  other.arrived = side.bytes;
  side.phase = other.phase = Side::Phase::Done;
  changed_.notify_all();
}

bool Mailbox::done(const Side& side) {
  std::lock_guard lock(mutex_);
  return side.phase == Side::Phase::Done;
}

void Mailbox::wait(const Side& side, const Deadline& deadline, const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return side.phase == Side::Phase::Done || stop; };
  if (deadline.never()) {
    changed_.wait(lock, ready);
  } else {
    changed_.wait_until(lock, deadline.end(), ready);
  }
}

void Mailbox::wake() {
  std::lock_guard lock(mutex_);  // so that no waiter is between testing `stop` and sleeping
  changed_.notify_all();
}

void Mailbox::withdraw(const Queue& queue, Side& side) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return side.phase != Side::Phase::Copying; });
  if (side.phase == Side::Phase::Waiting) std::erase(waiting_[queue], &side);
}

int ThreadWorld::group_number(int parent, int split, int leader) {
  std::lock_guard lock(mutex_);
  const int next = static_cast<int>(groups_.size()) + 1;
  return groups_.try_emplace({parent, split, leader}, next).first->second;
}

bool ThreadWorld::fail(int rank, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = Failure{rank, reason};
    failed_ = true;
  }
  for (Mailbox& mailbox : mailboxes_) mailbox.wake();
  return true;
}

std::optional<ThreadWorld::Failure> ThreadWorld::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void ThreadWorld::throw_if_failed() {
  if (!failed_) return;
  const Failure failure = *this->failure();
  throw PeerFailure(failure.rank, failure.reason);
}

}  // namespace penstock::comm
