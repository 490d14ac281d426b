// SPDX-License-Identifier: Apache-2.0
#include "comm/gpus/gpu_link.h"

#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/start_thread.h"

namespace penstock::comm {

using backend::DeviceMemory;

// One thread at a time makes the group's NCCL calls: first the joining thread, then the link's.
struct GpuLink::State {
  State(const Nccl& functions, const Nccl::Id& group_id, bool sends)
      : nccl(functions), id(group_id), sending(sends) {}

  const Nccl nccl;
  const Nccl::Id id;
  const bool sending;
  Nccl::Group group = nullptr;
  std::unique_ptr<DeviceMemory::Stream> stream = backend::device_memory()->stream();
  std::shared_ptr<std::byte> byte = backend::device_memory()->device_room(1);

  std::mutex mutex;  // guards the members below
  bool joined = false, abandoned = false;
  int code = Nccl::kSuccess;
  std::exception_ptr failure;  // of the GPU, in the joining thread

  // Rank 0 sends, rank 1 receives.
  int move(void* data, std::size_t bytes, void* handle) const {
    return sending ? nccl.send(data, bytes, Nccl::kBytes, 1, group, handle)
                   : nccl.receive(data, bytes, Nccl::kBytes, 0, group, handle);
  }

  int connect() {
    int result = Nccl::kSuccess;
    DeviceMemory::Point moved;
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
      if (!abandoned) return;
    }
    end(nccl.abort);
  }

  // Returns whether the caller must end the group. A thread that is still joining ends it itself.
  bool give_up() {
    const std::lock_guard lock(mutex);
    return !std::exchange(abandoned, true) && joined;
  }

  // Calls NCCL without the lock, since it waits for the other rank. A lost GPU has nothing left to end.
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

GpuLink::GpuLink(const Nccl& nccl, const Nccl::Id& id, bool sending)
    : state_(std::make_shared<State>(nccl, id, sending)) {
  start_thread("a link between GPUs", [this] { std::thread([state = state_] { state->join(); }).detach(); });
}

GpuLink::~GpuLink() { end(); }

void GpuLink::end() {
  if (state_->give_up()) state_->end(state_->nccl.destroy);
}

// Uses a thread, since NCCL may block it indefinitely.
void GpuLink::abandon() {
  if (!state_->give_up()) return;
  try {
    std::thread([state = state_] { state->end(state->nccl.abort); }).detach();
  } catch (const std::system_error&) {  // no thread: the group ends with the process
  }
}

bool GpuLink::joined() {
  const std::lock_guard lock(state_->mutex);
  state_->nccl.require(state_->code);
  if (state_->failure) std::rethrow_exception(state_->failure);
  return state_->joined;
}

DeviceMemory::Point GpuLink::move(void* data, std::size_t bytes, const DeviceMemory::Point& ready) {
  DeviceMemory::Point moved;
  state_->stream->work([&](void* handle) {
    backend::device_memory()->come_behind(ready);
    state_->nccl.require(state_->move(data, bytes, handle));
    moved = backend::device_memory()->point();
  });
  return moved;
}

bool GpuLink::passed(const DeviceMemory::Point& point) const {
  if (backend::device_memory()->passed(point)) return true;
  check();
  return false;
}

void GpuLink::check() const {
  int error = Nccl::kSuccess;
  state_->nccl.require(state_->nccl.async_error(state_->group, &error));
  if (error != Nccl::kInProgress) state_->nccl.require(error);
}

}  // namespace penstock::comm
