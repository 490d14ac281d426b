// SPDX-License-Identifier: Apache-2.0
// Messages of cards' memory from one rank to another on one channel of one group, by NCCL: a group of these
// two ranks alone, since NCCL's messages have no tags.
//
// The sender makes the group's id and sends it by another communicator; on both sides a thread joins the
// group, and moves a byte through it, since both wait for the other rank. Messages follow in a stream of the
// link's, each behind what the thread that posted it had issued.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/device_memory.h"
#include "comm/cards/nccl.h"
#include "comm/communicator.h"

namespace penstock::comm {

// One thread. NCCL's errors are RunErrors with its text.
class CardLink {
 public:
  // `ids` has a channel of that number for this link alone.
  CardLink(Communicator& ids, const Nccl& nccl, int peer, int channel, bool sending);
  ~CardLink();
  CardLink(const CardLink&) = delete;
  CardLink& operator=(const CardLink&) = delete;

  struct Transfer {
    void* data = nullptr;
    std::size_t bytes = 0;
    backend::DeviceMemory::Point ready;  // behind what was issued before
    backend::DeviceMemory::Point done;   // once issued
  };
  std::shared_ptr<Transfer> post(void* data, std::size_t bytes);

  // Without waiting. True when the card has done it.
  bool done(const Transfer& transfer);

  // Whether the link goes on by itself; until then whoever waits for anything calls this.
  bool begin();

  // Waits for the other rank to end its side too. Any thread, as the last of all; the destructor does it if
  // nobody has.
  void end();

  // Nothing of the link's is used any more; a rank is lost. Does not wait.
  void abandon();

 private:
  struct State;

  void check(int code) const;

  std::shared_ptr<State> state_;  // shared with the thread that joins, which may outlive the link
  Request id_;
  bool begun_ = false;
};

}  // namespace penstock::comm
