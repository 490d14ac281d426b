// SPDX-License-Identifier: Apache-2.0
#include "comm/gpus/gpu_links.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/start_thread.h"
#include "comm/backoff.h"
#include "comm/message_notes.h"

namespace penstock::comm {
namespace {

constexpr int kNotices = 0, kIds = 1;  // channels

void give(GpuLinks::Transfer& transfer) {
  const auto bytes = static_cast<std::size_t>(transfer.message.bytes);
  transfer.moved = transfer.link->move(transfer.data, bytes, transfer.ready);
}

// Keeps internal messages out of the rank's notes (message_notes.h).
class Unnoted {
  MessageNotes notes_;
  NotesScope scope_{notes_};
};

// Circle method: in each round a rank has at most one partner; after `rounds_of(size)` rounds all pairs have
// met. A partner >= `size` means no partner.
int rounds_of(int size) { return size + size % 2 - 1; }
int partner_in(int round, int place, int size) {
  const int last = rounds_of(size);
  if (place == last) return round * ((last + 1) / 2) % last;
  const int partner = (round - place + 2 * last) % last;
  return partner == place ? last : partner;
}

}  // namespace

GpuLinks::GpuLinks(Communicator& control, const Nccl& nccl)
    : control_(control), notices_(control.split(0, control.rank())), nccl_(nccl) {
  for (int rank = 0; rank < control.size(); ++rank) rank_of_[control.world_rank(rank)] = rank;
}

void GpuLinks::connect(const std::vector<int>& members, Seconds timeout) {
  const Unnoted unnoted;
  const int size = static_cast<int>(members.size());
  const int self = control_.world_rank(control_.rank());
  const int place = static_cast<int>(std::ranges::find(members, self) - members.begin());
  for (int round = 0; size > 1 && round < rounds_of(size); ++round) {
    const int partner = partner_in(round, place, size);
    if (partner < size) link_with(rank_of_.at(members[static_cast<std::size_t>(partner)]), timeout);
  }
}

// Links the direction from the lower rank to the higher rank first.
void GpuLinks::link_with(int rank, Seconds timeout) {
  if (peers_.contains(rank)) return;
  Peer peer;
  try {
    for (const bool lower : {true, false}) {
      const bool sending = (control_.rank() < rank) == lower;
      (sending ? peer.sending : peer.receiving) = joined_link(rank, sending, timeout);
    }
  } catch (...) {
    peer.abandon();  // its destructor would wait for the other rank
    throw;
  }
  listen_to(rank, peers_[rank] = std::move(peer));
}

std::unique_ptr<GpuLink> GpuLinks::joined_link(int rank, bool sending, Seconds timeout) {
  Nccl::Id id;
  notices_->set_timeout(timeout);
  if (sending) {
    nccl_.require(nccl_.get_unique_id(&id));
    notices_->send(bytes_of(id), rank, kIds).wait();
  } else {
    notices_->receive(writable_bytes_of(id), rank, kIds).wait();
  }
  auto link = std::make_unique<GpuLink>(nccl_, id, sending);
  const Message joining{sending, control_.world_rank(rank), kCollectiveChannel, 1};
  try {
    const Deadline deadline(timeout);
    for (Backoff backoff; !link->joined(); backoff.pause()) {
      control_.throw_if_failed();
      if (deadline.passed()) throw timed_out(joining, timeout);
    }
  } catch (...) {
    link->abandon();
    throw;
  }
  return link;
}

GpuLinks::GroupId GpuLinks::new_group() { return {control_.rank(), groups_++}; }

std::shared_ptr<GpuLinks::Transfer> GpuLinks::post(const GroupId& group, const Message& message, void* data) {
  const int rank = rank_of_.at(message.peer);
  PENSTOCK_CHECK(peers_.contains(rank), "ranks whose GPUs send to each other are connected");
  const Peer& peer = peers_.at(rank);
  const auto transfer =
      std::make_shared<Transfer>(Transfer{.message = message,
                                          .data = data,
                                          .ready = backend::device_memory()->point(),
                                          .link = (message.sending ? peer.sending : peer.receiving).get()});
  auto& lanes = message.sending ? outgoing_ : incoming_;
  lanes[{rank, group, message.channel}].posted.push_back(transfer);
  return transfer;
}

void GpuLinks::advance(Seconds timeout) {
  listen();
  send_what_is_asked_for(timeout);
}

bool GpuLinks::done(const Transfer& transfer) {
  if (transfer.other_length && transfer.message.sending) return true;  // the receiver reports it
  if (transfer.other_length) throw wrong_length(transfer.message, *transfer.other_length);
  if (transfer.moved) return transfer.link->passed(transfer.moved);
  transfer.link->check();
  return false;
}

bool GpuLinks::reached(const Transfer& transfer) { return backend::device_memory()->passed(transfer.ready); }

void GpuLinks::tell(int rank, const Notice& notice) {
  const Unnoted unnoted;
  Told& told = told_.emplace_back(Told{notice, {}});
  told.request = notices_->send(bytes_of(told.notice), rank, kNotices);
}

// Asks in order, and only for receives that the GPU has reached: the sender blocks until its message has
// moved.
void GpuLinks::ask_for(const LaneKey& key, Lane& lane) {
  for (; lane.told < lane.posted.size(); ++lane.told) {
    const Transfer& transfer = *lane.posted[lane.told];
    if (!reached(transfer)) return;
    tell(key.peer, {Notice::Kind::Asked, key.group, key.channel, transfer.message.bytes});
  }
}

void GpuLinks::listen_to(int rank, Peer& peer) {
  peer.listening = notices_->receive(writable_bytes_of(peer.heard), rank, kNotices);
}

void GpuLinks::listen() {
  const Unnoted unnoted;
  std::erase_if(told_, [](Told& told) { return told.request.test(); });
  for (auto& [rank, peer] : peers_) {
    while (!peer.closed && peer.listening.test()) heed(rank, peer);
  }
  for (auto& [key, lane] : incoming_) ask_for(key, lane);
}

void GpuLinks::heed(int rank, Peer& peer) {
  const Notice notice = peer.heard;
  peer.closed = notice.kind == Notice::Kind::Closed;
  if (peer.closed) return;
  listen_to(rank, peer);
  const LaneKey key{rank, notice.group, notice.channel};
  if (notice.kind == Notice::Kind::Asked) return outgoing_[key].asked.push_back(notice.bytes);
  Lane& lane = incoming_[key];
  PENSTOCK_CHECK(lane.told > 0, "a message that is going has been asked for");
  Transfer& transfer = *lane.posted.front();
  if (transfer.message.bytes == notice.bytes) {
    give(transfer);
  } else {
    transfer.other_length = notice.bytes;
  }
  lane.posted.pop_front();
  --lane.told;
}

// Starts the lane's next message if it is asked for and its bytes are ready; returns whether it did.
bool GpuLinks::launch(const LaneKey& key, Lane& lane) {
  if (lane.posted.empty() || lane.asked.empty()) return false;
  const std::shared_ptr<Transfer> transfer = lane.posted.front();
  if (!reached(*transfer)) return false;
  const Bytes bytes = transfer->message.bytes;
  if (lane.asked.front() == bytes) {
    give(*transfer);
    going_.push_back(transfer);
  } else {
    transfer->other_length = lane.asked.front();
  }
  tell(key.peer, {Notice::Kind::Going, key.group, key.channel, bytes});
  lane.posted.pop_front();
  lane.asked.pop_front();
  return true;
}

void GpuLinks::send_what_is_asked_for(Seconds timeout) {
  for (auto& [key, lane] : outgoing_) {
    while (launch(key, lane)) {
    }
  }
  if (going_.empty()) return;
  const WaitScope waiting(going_.front()->message);
  const Deadline deadline(timeout);
  for (Backoff backoff; !going_.empty(); backoff.pause()) {
    listen();
    control_.throw_if_failed();
    std::erase_if(going_, [](const auto& transfer) { return done(*transfer); });
    if (!going_.empty() && deadline.passed()) throw timed_out(going_.front()->message, timeout);
  }
}

// Ends all links concurrently: each waits for the other rank, which has its links in another order.
void GpuLinks::close(Seconds timeout) {
  for (const auto& [rank, peer] : peers_) tell(rank, {.kind = Notice::Kind::Closed});
  const auto open = [](const auto& entry) { return !entry.second.closed; };
  const Deadline deadline(timeout);
  for (Backoff backoff; std::ranges::any_of(peers_, open) || !told_.empty(); backoff.pause()) {
    listen();
    control_.throw_if_failed();
    if (deadline.passed()) return abandon();
  }
  std::vector<std::jthread> ends;
  for (auto& [rank, peer] : peers_) {
    for (GpuLink* link : {peer.sending.get(), peer.receiving.get()})
      start_thread("the end of NCCL's groups", [&] { ends.emplace_back([link] { link->end(); }); });
  }
}

void GpuLinks::abandon() {
  for (auto& [rank, peer] : peers_) peer.abandon();
}

}  // namespace penstock::comm
