// SPDX-License-Identifier: Apache-2.0
// One direction between the cards of two ranks: a group of NCCL's of these two alone, whose messages no
// others hold up, and a stream of its own.
//
// On a card, a message of NCCL's waits for its other side, and some calls of the driver's wait for all that
// the card has been given. So both sides give it a message only when the other one does too (card_links.h).
#pragma once

#include <cstddef>
#include <memory>

#include "backend/device_memory.h"
#include "comm/cards/nccl.h"

namespace penstock::comm {

// One thread. NCCL's errors are RunErrors with its text.
class CardLink {
 public:
  // A thread joins the group and moves a byte through it, since NCCL waits for the other rank in both: the
  // first message connects them.
  CardLink(const Nccl& nccl, const Nccl::Id& id, bool sending);
  ~CardLink();
  CardLink(const CardLink&) = delete;
  CardLink& operator=(const CardLink&) = delete;

  // Whether both ranks have joined.
  bool joined();

  // Gives the card the message, behind the point. Both sides in the same order, and of the same length.
  // Returns the point behind it.
  backend::DeviceMemory::Point move(void* data, std::size_t bytes, const backend::DeviceMemory::Point& ready);

  // Whether the card has passed the point of a message.
  bool passed(const backend::DeviceMemory::Point& point) const;

  // Throws what NCCL has met, with the network for example, since the ranks joined.
  void check() const;

  // Waits for the other rank to end its side too. Any thread, as the last of all; the destructor does it if
  // nobody has.
  void end();

  // Nothing of the link's is used any more; a rank is lost. Does not wait.
  void abandon();

 private:
  struct State;

  std::shared_ptr<State> state_;  // shared with the thread that joins, which may outlive the link
};

}  // namespace penstock::comm
