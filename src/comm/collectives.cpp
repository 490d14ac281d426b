// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "comm/device_messages.h"
#include "comm/message.h"
#include "comm/reduce.h"

namespace penstock::comm {
namespace {

constexpr std::size_t kSmallBytes = 8 * KiB;  // up to here latency dominates, and one rank sums for all
constexpr std::size_t kBlockBytes = 1 * MiB;  // per owner and turn: limits the buffers of a reduction

// Part `index` of `parts` nearly equal parts, cut between values.
std::span<std::byte> part_of(std::span<std::byte> values, std::size_t value_bytes, int index, int parts) {
  const std::size_t count = values.size() / value_bytes;
  const std::size_t begin = count * index / parts;
  const std::size_t end = count * (index + 1) / parts;
  return values.subspan(begin * value_bytes, (end - begin) * value_bytes);
}

}  // namespace

Group group_of_all(int rank, int size) {
  Group everyone{.rank = rank, .members = std::vector<int>(size)};
  std::iota(everyone.members.begin(), everyone.members.end(), 0);
  return everyone;
}

void Collectives::set_timeout(Seconds timeout) {
  PENSTOCK_CHECK(timeout >= 0, "a timeout is a length of time");
  group_.timeout = timeout;
}

Request Collectives::start_send(std::span<const std::byte> bytes, int to, int channel) {
  bytes_sent_ += static_cast<std::int64_t>(bytes.size());
  return post_send(bytes, to, channel);
}

Request Collectives::send(std::span<const std::byte> bytes, int to, int channel) {
  PENSTOCK_CHECK(to >= 0 && to < size(), "messages go to ranks of the group");
  PENSTOCK_CHECK(channel >= 0 && channel < kChannelLimit, "channels are 0 to 254");
  return start_send(bytes, to, channel);
}

Request Collectives::receive(std::span<std::byte> bytes, int from, int channel) {
  PENSTOCK_CHECK(from >= 0 && from < size(), "messages come from ranks of the group");
  PENSTOCK_CHECK(channel >= 0 && channel < kChannelLimit, "channels are 0 to 254");
  return post_receive(bytes, from, channel);
}

// All-to-all, so that each rank can name a missing one.
void Collectives::barrier() { all_gather({}, {}); }

std::vector<Request> Collectives::send_to_others(std::span<const std::byte> bytes) {
  std::vector<Request> sends;
  for (int to = 0; to < size(); ++to) {
    if (to != rank()) sends.push_back(start_send(bytes, to, kCollectiveChannel));
  }
  return sends;
}

// A binomial tree over positions relative to the root: clearing a position's lowest bit gives its parent.
void Collectives::broadcast(std::span<std::byte> bytes, int root) {
  PENSTOCK_CHECK(root >= 0 && root < size(), "the root is a rank of the group");
  const int position = (rank() - root + size()) % size();
  const auto rank_at = [&](int other) { return (other + root) % size(); };
  const int reach =
      position == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size()))) : position & -position;
  if (position != 0) post_receive(bytes, rank_at(position - reach), kCollectiveChannel).wait();
  std::vector<Request> sends;
  for (int step = reach / 2; step > 0; step /= 2) {
    if (position + step < size()) {
      sends.push_back(start_send(bytes, rank_at(position + step), kCollectiveChannel));
    }
  }
  wait_all(sends);
}

void Collectives::all_reduce(void* values, std::size_t count, Type type, Reduction reduction) {
  const std::size_t piece = kBlockBytes * size();
  std::span<std::byte> rest(static_cast<std::byte*>(values), count * size_of(type));
  do {
    const auto now = rest.first(std::min(piece, rest.size()));
    reduce_piece(now, type, reduction);
    rest = rest.subspan(now.size());
  } while (!rest.empty());
}

// Each owner reduces one block and distributes the result.
void Collectives::reduce_piece(std::span<std::byte> values, Type type, Reduction reduction) {
  const int owners = values.size() <= kSmallBytes ? 1 : size();
  const auto block = [&](int owner) { return part_of(values, size_of(type), owner, owners); };
  std::vector<Request> requests;
  for (int owner = 0; owner < owners; ++owner) {
    if (owner != rank()) requests.push_back(start_send(block(owner), owner, kCollectiveChannel));
  }
  if (rank() < owners) combine_everyones(block(rank()), block(rank()), type, reduction);
  wait_all(requests);

  requests.clear();
  if (rank() < owners) requests = send_to_others(block(rank()));
  for (int owner = 0; owner < owners; ++owner) {
    if (owner != rank()) requests.push_back(post_receive(block(owner), owner, kCollectiveChannel));
  }
  wait_all(requests);
}

// Receives all other blocks and combines them with `mine`. `result` may alias `mine`.
void Collectives::combine_everyones(std::span<const std::byte> mine, std::span<std::byte> result, Type type,
                                    Reduction reduction) {
  PENSTOCK_CHECK(!is_on_device(mine.data()), "reductions are of the host's memory; a ShareLane's are of any");
  std::vector<std::vector<std::byte>> blocks(size());
  std::vector<Request> receives(size());
  for (int from = 0; from < size(); ++from) {
    if (from == rank()) {
      blocks[from].assign(mine.begin(), mine.end());
    } else {
      blocks[from].resize(mine.size());
      receives[from] = post_receive(blocks[from], from, kCollectiveChannel);
    }
  }
  wait_all(receives);
  std::vector<void*> addends;
  for (auto& block : blocks) addends.push_back(block.data());
  combine_tree(addends, mine.size() / size_of(type), type, reduction);
  std::ranges::copy(blocks[0], result.begin());
}

void Collectives::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  PENSTOCK_CHECK(all.size() == mine.size() * size(), "there is room for one block of each rank");
  std::vector<Request> requests;
  for (int from = 0; from < size(); ++from) {
    const auto block = all.subspan(from * mine.size(), mine.size());
    if (from != rank()) requests.push_back(post_receive(block, from, kCollectiveChannel));
  }
  for (Request& send : send_to_others(mine)) requests.push_back(std::move(send));
  copy_anywhere(all.data() + rank() * mine.size(), mine);
  wait_all(requests);
}

void Collectives::reduce_scatter(const void* all, void* mine, std::size_t count, Type type) {
  const std::size_t bytes = count * size_of(type);
  const auto block = [&](int owner) {
    return std::span(static_cast<const std::byte*>(all) + owner * bytes, bytes);
  };
  std::vector<Request> sends;
  for (int owner = 0; owner < size(); ++owner) {
    if (owner != rank()) sends.push_back(start_send(block(owner), owner, kCollectiveChannel));
  }
  combine_everyones(block(rank()), {static_cast<std::byte*>(mine), bytes}, type, Reduction::Sum);
  wait_all(sends);
}

void Collectives::all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) {
  PENSTOCK_CHECK(sent.size() == received.size() && sent.size() % size() == 0, "one block for each rank");
  const std::size_t bytes = sent.size() / size();
  std::vector<Request> requests;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    requests.push_back(post_receive(received.subspan(peer * bytes, bytes), peer, kCollectiveChannel));
    requests.push_back(start_send(sent.subspan(peer * bytes, bytes), peer, kCollectiveChannel));
  }
  copy_anywhere(received.data() + rank() * bytes, sent.subspan(rank() * bytes, bytes));
  wait_all(requests);
}

std::unique_ptr<Communicator> Collectives::split(int color, int key) {
  struct Choice {
    int color, key;
  };
  const Choice mine{color, key};
  std::vector<Choice> choices(size());
  all_gather(bytes_of(mine), std::as_writable_bytes(std::span(choices)));

  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (choices[rank].color == color) ranks.push_back(rank);
  }
  const int leader = ranks.front();
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return choices[rank].key; });

  Group part{.rank = static_cast<int>(std::ranges::find(ranks, rank()) - ranks.begin()),
             .timeout = group_.timeout};
  for (int rank : ranks) part.members.push_back(group_.members[rank]);
  return subgroup(std::move(part), leader);
}

}  // namespace penstock::comm
