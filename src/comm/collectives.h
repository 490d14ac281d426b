// SPDX-License-Identifier: Apache-2.0
// The collectives, implemented once for every transport over point-to-point messages on a separate channel.
// So waiting ranks can name a missing rank, timeouts and aborts work as in any other wait, and sums have one
// order. A transport only posts messages and keeps the channels of sub-groups separate.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace penstock::comm {

// The members of a group, and this rank's index.
struct Group {
  int rank = 0;
  std::vector<int> members;  // world rank of each rank of the group
  Seconds timeout = 120;
};

Group group_of_all(int rank, int size);

class Collectives : public Communicator {
 public:
  explicit Collectives(Group group) : group_(std::move(group)) {}

  int rank() const final { return group_.rank; }
  int size() const final { return static_cast<int>(group_.members.size()); }
  int world_rank(int rank) const final { return group_.members[static_cast<std::size_t>(rank)]; }
  void set_timeout(Seconds timeout) override;

  Request send(std::span<const std::byte> bytes, int to, int channel) final;
  Request receive(std::span<std::byte> bytes, int from, int channel) final;

  void barrier() final;
  void broadcast(std::span<std::byte> bytes, int root) final;
  void all_reduce(void* values, std::size_t count, Type type, Reduction reduction) final;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) final;
  void reduce_scatter(const void* all, void* mine, std::size_t count, Type type) final;
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) final;
  std::unique_ptr<Communicator> split(int color, int key) final;
  std::int64_t bytes_sent() const final { return bytes_sent_; }

 protected:
  const Group& group() const { return group_; }

  // Ranks are relative to the group; the channel is a caller's or kCollectiveChannel.
  virtual Request post_send(std::span<const std::byte> bytes, int to, int channel) = 0;
  virtual Request post_receive(std::span<std::byte> bytes, int from, int channel) = 0;
  // The sub-group of this rank. All ranks of this group call it; `leader` is the lowest rank of this group in
  // the sub-group, so ranks of one sub-group pass the same leader.
  virtual std::unique_ptr<Communicator> subgroup(Group part, int leader) = 0;

 private:
  Request start_send(std::span<const std::byte> bytes, int to, int channel);
  void reduce_piece(std::span<std::byte> values, Type type, Reduction reduction);
  void combine_everyones(std::span<const std::byte> mine, std::span<std::byte> result, Type type,
                         Reduction reduction);
  std::vector<Request> send_to_others(std::span<const std::byte> bytes);

  Group group_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace penstock::comm
