// SPDX-License-Identifier: Apache-2.0
#include "comm/cards/card_link.h"

#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace penstock::comm {

// NCCL's calls for the group are made by one thread at a time: the one that joins, then the link's.
struct CardLink::State {
  State(const Nccl& functions, bool sends) : nccl(functions), sending(sends) {}

  const Nccl nccl;
  const bool sending;
  Nccl::Id id{};
  Nccl::Group group = nullptr;
  std::unique_ptr<backend::DeviceMemory::Stream> stream = backend::device_memory()->stream();
  std::shared_ptr<std::byte> byte = backend::device_memory()->device_room(1);

  std::mutex mutex;  // guards the members below
  bool joined = false, abandoned = false;
  int code = Nccl::kSuccess;
  std::exception_ptr failure;                     // of the card, met by the thread that joins
  std::deque<std::shared_ptr<Transfer>> waiting;  // posted, not issued

  // Ranks are 0, the sender, and 1.
  int move(void* data, std::size_t bytes, void* handle) const {
    return sending ? nccl.send(data, bytes, Nccl::kBytes, 1, group, handle)
                   : nccl.receive(data, bytes, Nccl::kBytes, 0, group, handle);
  }

  int connect() {
    int result = Nccl::kSuccess;
    backend::DeviceMemory::Point moved;
    stream->work([&](void* handle) {
      result = nccl.init_rank(&group, 2, id, sending ? 0 : 1);
      if (result == Nccl::kSuccess) result = move(byte.get(), 1, handle);
      if (result == Nccl::kSuccess) moved = backend::device_memory()->point();
    });
    if (moved) backend::device_memory()->wait_for(moved);
    return result;
  }

  void join() {
    int result = Nccl::kSuccess;
    std::exception_ptr thrown;
    try {
      result = connect();
    } catch (...) {
      thrown = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      code = result;
      failure = thrown;
      joined = true;
      if (!abandoned) return issue_waiting();
    }
    end(nccl.abort);
  }

  void issue_waiting() {
    try {
      issue();
    } catch (...) {
      failure = std::current_exception();
    }
  }

  void issue() {
    const bool usable = joined && !abandoned && !failure;
    for (; usable && code == Nccl::kSuccess && !waiting.empty(); waiting.pop_front()) {
      Transfer& next = *waiting.front();
      stream->work([&](void* handle) {
        backend::device_memory()->come_behind(next.ready);
        code = move(next.data, next.bytes, handle);
        if (code == Nccl::kSuccess) next.done = backend::device_memory()->point();
      });
    }
  }

  // Whether there is a group to end. Nothing is issued from then on; a thread that joins yet ends its group.
  bool give_up() {
    const std::lock_guard lock(mutex);
    return !std::exchange(abandoned, true) && joined;
  }

  // Without the lock, since NCCL waits for the other rank. Of a lost card nothing is left to end.
  void end(const std::function<int(Nccl::Group)>& how) {
    Nccl::Group ended = nullptr;
    {
      const std::lock_guard lock(mutex);
      ended = std::exchange(group, nullptr);
    }
    if (ended == nullptr) return;
    try {
      stream->work([&](void*) { how(ended); });
    } catch (const std::exception&) {
    }
  }
};

CardLink::CardLink(Communicator& ids, const Nccl& nccl, int peer, int channel, bool sending)
    : state_(std::make_shared<State>(nccl, sending)) {
  if (sending) check(nccl.get_unique_id(&state_->id));
  id_ = sending ? ids.send(bytes_of(state_->id), peer, channel)
                : ids.receive(writable_bytes_of(state_->id), peer, channel);
  begin();
}

CardLink::~CardLink() { end(); }

void CardLink::end() {
  if (state_->give_up()) state_->end(state_->nccl.destroy);
}

// By a thread, which NCCL may hold up for as long as it likes.
void CardLink::abandon() {
  if (state_->give_up()) std::thread([state = state_] { state->end(state->nccl.abort); }).detach();
}

bool CardLink::begin() {
  const bool known = id_.test();
  const bool sends = state_->sending;
  if (!begun_ && (known || sends)) {
    begun_ = true;
    std::thread([state = state_] { state->join(); }).detach();
  }
  return known;
}

std::shared_ptr<CardLink::Transfer> CardLink::post(void* data, std::size_t bytes) {
  const auto transfer =
      std::make_shared<Transfer>(Transfer{data, bytes, backend::device_memory()->point(), {}});
  const std::lock_guard lock(state_->mutex);
  state_->waiting.push_back(transfer);
  state_->issue();
  return transfer;
}

bool CardLink::done(const Transfer& transfer) {
  const std::lock_guard lock(state_->mutex);
  if (transfer.done && backend::device_memory()->passed(transfer.done)) return true;
  int error = Nccl::kSuccess;
  if (state_->joined && state_->group != nullptr) check(state_->nccl.async_error(state_->group, &error));
  if (error != Nccl::kInProgress) check(error);
  check(state_->code);
  if (state_->failure) std::rethrow_exception(state_->failure);
  return false;
}

void CardLink::check(int code) const {
  if (code != Nccl::kSuccess) throw RunError(std::string("NCCL: ") + state_->nccl.text_of(code));
}

}  // namespace penstock::comm
