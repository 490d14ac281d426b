// SPDX-License-Identifier: Apache-2.0
// Byte transfer between ranks. One small interface, several transports: single (one rank), threads (many
// ranks in one process), MPI, NCCL (comm/gpus). All pass the same contract test.
//
// Point-to-point messages are non-blocking and first-in-first-out per (source, destination, channel),
// unordered between channels. A buffer passed to send or receive belongs to the communicator until the
// request is done. A rank uses its communicator from one thread only; different ranks may be different
// threads. Buffers of messages, gathers and all-to-alls may be in a GPU's memory (backend/device_memory.h):
// such a message runs after the work that the calling thread has issued, and once its request is done, work
// that the thread issues next runs after the message.
//
// Collectives are blocking; all ranks of the group call them in the same order. Reductions sum in an aligned
// binary tree over ranks, ((0+1)+(2+3))+..., so the result is the same on every rank and in every run, and
// equal to that of half as many ranks that add two neighbours' values first.
//
// Waits without progress for `timeout` throw RunError naming the peer and the message. A rank that fails
// calls abort(reason): every other rank's pending or next call throws PeerFailure with that rank and reason.
// Error texts use world ranks, also in sub-groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "comm/message.h"

namespace penstock::comm {

// Thrown on the ranks that did not fail: "rank 2 failed: <its reason>".
struct PeerFailure : RunError {
  PeerFailure(int rank_of_world, const std::string& its_reason)
      : PeerFailure("rank " + std::to_string(rank_of_world), rank_of_world, its_reason, false) {}
  int rank;

  // The same failure, noticed during this rank's `work`. Keeps the work if one is named already.
  PeerFailure during(const std::string& work) const {
    return noticed_ ? *this : PeerFailure(name_, rank, reason_ + " (noticed during " + work + ")", true);
  }
  // The same failure with a longer name of the rank.
  PeerFailure of(const std::string& name) const { return {name, rank, reason_, noticed_}; }

 private:
  PeerFailure(const std::string& name, int rank_of_world, const std::string& reason, bool noticed)
      : RunError(name + " failed: " + reason),
        rank(rank_of_world),
        name_(name),
        reason_(reason),
        noticed_(noticed) {}

  std::string name_, reason_;
  bool noticed_ = false;
};

// mpirun or srun ends the job: nobody's fault.
struct LauncherEnd : RunError {
  LauncherEnd() : RunError("SIGTERM: the launcher ends the job") {}
};

// Returns the work's result. RunErrors and PeerFailures from the work name it.
template <class Work>
auto as_part_of(const std::string& name, Work&& work) {
  try {
    return work();
  } catch (const PeerFailure& failure) {
    throw failure.during(name);
  } catch (const LauncherEnd&) {
    throw;
  } catch (const RunError& failure) {
    throw RunError(name + ": " + failure.what());
  }
}

// A message in flight. Empty (default) requests are done. Movable; destroying one that is not done is allowed
// only after an abort or a throwing wait, or while an exception unwinds towards an abort; it withdraws the
// message as far as possible, so that the buffer may be freed.
class Request {
 public:
  struct State {
    virtual ~State() = default;
    virtual bool test() = 0;  // progress without blocking; true when done
    virtual void wait() = 0;  // until done, the timeout, or an abort
    // Grows while the message moves, if the transport sees that, and while it waits for this rank's own GPU.
    virtual std::int64_t progress() const { return 0; }
  };
  Request() = default;
  explicit Request(std::unique_ptr<State> state) : state_(std::move(state)) {}
  // Notes posting, waiting and arrival (message_notes.h).
  Request(std::unique_ptr<State> state, const Message& message);

  // Returns true when done, and then empties the request.
  bool test();
  void wait();
  bool done() const { return state_ == nullptr; }
  std::int64_t progress() const { return state_ ? state_->progress() : 0; }

 private:
  void finish();

  std::unique_ptr<State> state_;
  std::optional<Message> message_;
};

void wait_all(std::span<Request> requests);

enum class Type : std::uint8_t { F32, F64, I64 };
enum class Reduction : std::uint8_t { Sum, Max };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int world_rank(int rank) const = 0;  // of a rank of this group

  // Messages may have 0 bytes. Both sides must give the same length (else the receiver's wait throws
  // RunError). Neither call waits for the other side. Channels are 0 to 254.
  virtual Request send(std::span<const std::byte> bytes, int to, int channel) = 0;
  virtual Request receive(std::span<std::byte> bytes, int from, int channel) = 0;

  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Max of values that include a NaN is NaN.
  virtual void all_reduce(void* values, std::size_t count, Type type, Reduction reduction) = 0;
  // Each rank passes `mine`; all[r * mine.size()..] is rank r's. Same length on all ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // `all` holds size() blocks of `count` values; `mine` receives the sum over ranks of block rank().
  virtual void reduce_scatter(const void* all, void* mine, std::size_t count, Type type) = 0;
  // Block r of `sent` goes to rank r; block r of `received` came from rank r. Equal block lengths.
  virtual void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  // The sub-group of the ranks with the same color, ordered by key, then by rank. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // Call before the first message between GPU memories in this group. Collective; ranks that are in several
  // groups connect them in the same order, while no such messages are in flight.
  virtual void connect_gpus() {}

  // Notifies all ranks that this one has failed. With MPI it does not return (the process ends with exit code
  // 3); elsewhere it returns and the caller unwinds. May be called by any rank at any time, repeatedly.
  virtual void abort(const std::string& reason) = 0;

  // Throws PeerFailure if this rank has heard that another one failed.
  virtual void throw_if_failed() = 0;

  // Bytes that this rank has sent through this communicator so far, including collectives, excluding
  // sub-groups.
  virtual std::int64_t bytes_sent() const = 0;

  // Seconds without progress after which a wait fails; 0: never. Default 120. Applies to messages posted
  // later; groups split off later inherit it.
  virtual void set_timeout(Seconds timeout) = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}
template <class T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

}  // namespace penstock::comm
