// SPDX-License-Identifier: Apache-2.0
// The links of a rank's card to those of other ranks, and the order of what goes through them.
//
// NCCL's messages have no tags, so the messages of all groups and channels from one rank to another share a
// link, in the order in which their sender gives them to its card. The host's notices tell the other side: a
// receiver asks for each message that it has posted; a sender that has been asked, and whose bytes are there,
// says that a message is going and gives it to its card; on that the receiver does too.
//
// A message on a card waits for its other side, and then so may calls of the driver's (the first use of a
// kernel, say), and with them a rank that the other side waits for. Therefore a rank sends only while it
// waits for something itself, and does nothing but listen until the message has gone; and a receiver's card
// gets no message that is not going already. Outside of its waits no rank's card waits for another rank.
// Groups are joined beforehand, when no messages are on their way.
#pragma once

#include <compare>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/cards/card_link.h"
#include "comm/communicator.h"

namespace penstock::comm {

// One thread.
class CardLinks {
 public:
  // Ranks are those of `control`, which outlives this and is used through it alone. Collective.
  CardLinks(Communicator& control, const Nccl& nccl);

  // Links every two of these ranks of the world, of whom this is one. Collective among them; ranks that are
  // in several groups connect these in the same order.
  void connect(const std::vector<int>& members, Seconds timeout);

  // What tells groups apart: the same on all of its ranks, another of each.
  struct GroupId {
    int maker = -1, number = 0;
    auto operator<=>(const GroupId&) const = default;
  };
  GroupId new_group();  // to be told to the others

  struct Transfer {
    Message message;
    void* data = nullptr;
    backend::DeviceMemory::Point ready;  // behind what was issued before
    CardLink* link = nullptr;
    backend::DeviceMemory::Point moved;  // behind it, once the card has it
    std::optional<Bytes> other_length;   // of the other side, if it differs: nothing is moved
  };
  // The message's peer is a rank of the world.
  std::shared_ptr<Transfer> post(const GroupId& group, const Message& message, void* data);

  // Listens, and sends what can be sent if the calling thread is in a wait. Whoever waits for anything calls
  // it.
  void advance(Seconds timeout);

  // Whether the card has moved it. Throws where the lengths differ.
  static bool done(const Transfer& transfer);

  // Waits for all ranks that have links with this one to close theirs.
  void close(Seconds timeout);
  // Does not wait; a rank is lost.
  void abandon();

 private:
  struct Notice {
    enum class Kind : std::int32_t { Asked, Going, Closed } kind = Kind::Closed;
    GroupId group;
    std::int32_t channel = 0;
    Bytes bytes = 0;
  };
  struct Told {
    Notice notice;
    Request request;
  };
  struct Peer {
    std::unique_ptr<CardLink> sending, receiving;
    Notice heard;
    Request listening;
    bool closed = false;
  };
  // Messages of one group and channel, one way.
  struct Lane {
    std::deque<std::shared_ptr<Transfer>> posted;
    std::deque<Bytes> asked;  // by the receiver, of a sender
  };
  struct LaneKey {
    int peer = 0;
    GroupId group;
    int channel = 0;
    auto operator<=>(const LaneKey&) const = default;
  };

  void link_with(int rank, Seconds timeout);
  std::unique_ptr<CardLink> joined_link(int rank, bool sending, Seconds timeout);
  void listen();
  void heed(int rank, Peer& peer);
  void listen_to(int rank, Peer& peer);
  void tell(int rank, const Notice& notice);
  bool launch(const LaneKey& key, Lane& lane);
  void send_what_is_asked_for(Seconds timeout);

  Communicator& control_;
  std::unique_ptr<Communicator> notices_;
  const Nccl nccl_;
  std::map<int, int> rank_of_;  // of control, by that of the world
  std::map<int, Peer> peers_;
  std::map<LaneKey, Lane> outgoing_, incoming_;
  std::vector<std::shared_ptr<Transfer>> going_;  // that this rank's card has been given
  std::list<Told> told_;
  int groups_ = 0;
};

}  // namespace penstock::comm
