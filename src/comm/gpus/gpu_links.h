// SPDX-License-Identifier: Apache-2.0
// The links of a rank's GPU to the GPUs of other ranks, and the order of the messages on them.
//
// NCCL messages have no tags, so the messages of all groups and channels from one rank to another share a
// link, in the order in which the sender gives them to its GPU. Notices between the hosts agree on this
// order: a receiver asks for each message once its GPU has reached the receive; a sender that was asked, and
// whose bytes are ready, announces the message and gives it to its GPU; on the notice the receiver does the
// same.
//
// A message on a GPU waits for its other side, and driver calls (the first use of a kernel, for example) may
// then wait for the message, and with them a rank that the other side waits for. Therefore a sender only
// listens until the message has moved, which takes only the transfer's time, since both sides are ready; and
// a receiver's GPU gets a message only when the sender's GPU already has it. Outside of these calls no GPU
// waits for another rank. Groups are connected beforehand, while no messages are in flight.
#pragma once

#include <compare>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/gpus/gpu_link.h"

namespace penstock::comm {

// One thread.
class GpuLinks {
 public:
  // Uses the ranks of `control`, which outlives this object and is used only through it. Collective.
  GpuLinks(Communicator& control, const Nccl& nccl);

  // Links every pair of `members`, world ranks that include this one. Collective among them; ranks that are
  // in several groups connect the groups in the same order.
  void connect(const std::vector<int>& members, Seconds timeout);

  // Identifies a group: the same on all of its ranks, unique among groups.
  struct GroupId {
    int maker = -1, number = 0;
    auto operator<=>(const GroupId&) const = default;
  };
  GroupId new_group();  // one rank calls this and broadcasts the result

  struct Transfer {
    Message message;
    void* data = nullptr;
    backend::DeviceMemory::Point ready;  // after the work that was issued before
    GpuLink* link = nullptr;
    backend::DeviceMemory::Point moved;  // after the message, once the GPU has it
    std::optional<Bytes> other_length;   // of the other side, if it differs: nothing moves then
  };
  // The message's peer is a world rank.
  std::shared_ptr<Transfer> post(const GroupId& group, const Message& message, void* data);

  // Handles notices, sends the messages that both sides are ready for, and returns when they have moved.
  // Called by every test() and wait.
  void advance(Seconds timeout);

  // Whether the GPU has moved the message. A receiver throws RunError if the lengths differ.
  static bool done(const Transfer& transfer);

  // Whether the GPU has finished the work that this rank issued before the message.
  static bool reached(const Transfer& transfer);

  // Waits until all ranks linked with this one close their links.
  void close(Seconds timeout);
  // Call when a rank is lost. Does not wait.
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
    std::unique_ptr<GpuLink> sending, receiving;
    Notice heard;
    Request listening;
    bool closed = false;

    // Also of a peer with one link or none yet.
    void abandon() {
      for (GpuLink* link : {sending.get(), receiving.get()}) {
        if (link) link->abandon();
      }
    }
  };
  // Messages of one group and channel in one direction.
  struct Lane {
    std::deque<std::shared_ptr<Transfer>> posted;
    std::deque<Bytes> asked;  // lengths that the receiver asked for; senders only
    std::size_t told = 0;     // posted receives that the sender was asked for; receivers only
  };
  struct LaneKey {
    int peer = 0;
    GroupId group;
    int channel = 0;
    auto operator<=>(const LaneKey&) const = default;
  };

  void link_with(int rank, Seconds timeout);
  std::unique_ptr<GpuLink> joined_link(int rank, bool sending, Seconds timeout);
  void listen();
  void heed(int rank, Peer& peer);
  void listen_to(int rank, Peer& peer);
  void tell(int rank, const Notice& notice);
  void ask_for(const LaneKey& key, Lane& lane);
  bool launch(const LaneKey& key, Lane& lane);
  void send_what_is_asked_for(Seconds timeout);

  Communicator& control_;
  std::unique_ptr<Communicator> notices_;
  const Nccl nccl_;
  std::map<int, int> rank_of_;  // rank in control, by world rank
  std::map<int, Peer> peers_;
  std::map<LaneKey, Lane> outgoing_, incoming_;
  std::vector<std::shared_ptr<Transfer>> going_;  // sends that this rank's GPU has
  std::list<Told> told_;
  int groups_ = 0;
};

}  // namespace penstock::comm
