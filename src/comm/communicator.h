// SPDX-License-Identifier: Apache-2.0
// How ranks exchange bytes. One small interface, several transports: single (one rank), threads (many ranks
// in one process), MPI; NCCL later. The same contract test runs on all of them.
//
// Point-to-point messages are non-blocking and first-in-first-out per (source, destination, channel); there
// is no order between channels. A buffer handed to send or receive belongs to the communicator until the
// request is done. A rank uses its communicator from one thread only; different ranks may be different
// threads. Collectives are called by all ranks of the group in the same order; they block. Reductions sum in
// rank order 0, 1, 2, ..., so their result is the same on every rank and in every run.
//
// Waits give up after `timeout` without progress and throw RunError naming the peer and the message waited
// for. A rank that fails calls abort(reason): every other rank's pending or next call throws PeerFailure,
// naming that rank and reason. Texts name ranks of the world, in sub-groups too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace penstock::comm {

// What the ranks that did not fail get to see: "rank 2 failed: <its reason>".
struct PeerFailure : RunError {
  PeerFailure(int rank_of_world, const std::string& reason)
      : RunError("rank " + std::to_string(rank_of_world) + " failed: " + reason), rank(rank_of_world) {}
  int rank;
};

// A message under way. Empty (default) requests are done. Movable; destroying one that is not done is allowed
// only after an abort or a wait that threw, and while an exception unwinds towards an abort; the message is
// withdrawn then, as far as it can be, so that its buffer may go too.
class Request {
 public:
  struct State {
    virtual ~State() = default;
    virtual bool test() = 0;  // progress without blocking; true when done
    virtual void wait() = 0;  // until done, the timeout, or an abort
  };
  Request() = default;
  explicit Request(std::unique_ptr<State> state) : state_(std::move(state)) {}

  // True when done; afterwards the request is empty.
  bool test();
  void wait();
  bool done() const { return state_ == nullptr; }

 private:
  std::unique_ptr<State> state_;
};

enum class Type : std::uint8_t { F32, F64, I64 };
enum class Reduction : std::uint8_t { Sum, Max };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Messages of 0 bytes are messages. Lengths of both sides must agree (else the receiver's wait throws
  // RunError). Neither call waits for the other side. Channels are 0 to 254.
  virtual Request send(std::span<const std::byte> bytes, int to, int channel) = 0;
  virtual Request receive(std::span<std::byte> bytes, int from, int channel) = 0;

  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // A NaN among the values makes their Max NaN.
  virtual void all_reduce(void* values, std::size_t count, Type type, Reduction reduction) = 0;
  // Each rank gives `mine`; all[r * mine.size()..] is rank r's. Same length on all ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // all holds size() blocks of `count` values; mine receives the sum of everyone's block rank().
  virtual void reduce_scatter(const void* all, void* mine, std::size_t count, Type type) = 0;
  // Block r of `sent` goes to rank r; block r of `received` came from rank r. Equal block lengths.
  virtual void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  // The sub-group of the ranks that give the same color, ordered by key, then by rank. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // Tells all ranks that this one has failed. Does not return normally in MPI (the process ends with exit
  // code 3); elsewhere it returns and the caller unwinds. Safe to call from any rank at any time, more than
  // once.
  virtual void abort(const std::string& reason) = 0;

  // Seconds without progress after which a wait gives up; 0: never. Default 120. For messages posted from now
  // on; groups split off later inherit it.
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
