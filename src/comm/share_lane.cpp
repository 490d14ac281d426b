// SPDX-License-Identifier: Apache-2.0
#include "comm/share_lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/device_messages.h"
#include "comm/message_notes.h"
#include "comm/polled_wait.h"
#include "comm/reduce.h"

namespace penstock::comm {
namespace {

// The part of a share that the piece at `offset` moves.
SharedBuffer::Share part_of(const SharedBuffer::Share& share, std::int64_t offset, std::int64_t piece) {
  return {share.begin + offset, std::clamp<std::int64_t>(share.count - offset, 0, piece)};
}

std::int64_t longest_share(const SharedBuffer& buffer) {
  return std::ranges::max_element(buffer.shares, {}, &SharedBuffer::Share::count)->count;
}

}  // namespace

std::int64_t ShareLane::room_for(const Limits& limits, int ranks, std::int64_t longest) {
  return std::int64_t{limits.window} * (ranks - 1) * std::min(limits.piece, longest);
}

ShareLane::ShareLane(Type type, std::span<std::byte> room, const Limits& limits, int channel, Seconds timeout,
                     Watch watch)
    : type_(type),
      room_(room),
      limits_(limits),
      channel_(channel),
      timeout_(timeout),
      watch_(std::move(watch)) {
  for (int slot = limits.window - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

ShareLane::Ticket ShareLane::sum(Communicator& ranks, std::vector<SharedBuffer> buffers, std::string name) {
  return queue(
      ranks,
      {.buffers = std::move(buffers), .element = size_of(type_), .sums = true, .name = std::move(name)});
}

ShareLane::Ticket ShareLane::gather(Communicator& ranks, std::vector<SharedBuffer> buffers,
                                    std::size_t element, std::string name) {
  return queue(ranks, {.buffers = std::move(buffers), .element = element, .name = std::move(name)});
}

ShareLane::Ticket ShareLane::queue(Communicator& ranks, Operation operation) {
  operation.ranks = &ranks;
  for (const SharedBuffer& buffer : operation.buffers) {
    PENSTOCK_CHECK(std::ssize(buffer.shares) == ranks.size(), "every rank has a share");
  }
  operations_.push_back(std::move(operation));
  advance();
  return queued_++;
}

bool ShareLane::advance() {
  if (moving_ || operations_.empty()) return false;
  moving_ = true;
  const struct Restore {
    bool& flag;
    ~Restore() { flag = false; }
  } restore{moving_};
  return as_part_of(std::string(operations_.front().name), [this] { return move(); });
}

bool ShareLane::move() {
  bool moved = false;
  while (!operations_.empty()) {
    Operation& operation = operations_.front();
    if (!std::exchange(operation.begun, true) && watch_.began) watch_.began(done_);
    bool more = end_pieces();
    more |= begin_pieces();
    moved |= more;
    if (pieces_.empty() && operation.buffer == operation.buffers.size()) {
      if (watch_.ended) watch_.ended(done_);
      operations_.pop_front();
      ++done_;
      moved = true;
    } else if (!more) {
      break;
    }
  }
  return moved;
}

bool ShareLane::begin_pieces() {
  Operation& operation = operations_.front();
  bool begun = false;
  while (operation.buffer < operation.buffers.size() && !free_slots_.empty()) {
    if (operation.offset >= longest_share(operation.buffers[operation.buffer])) {
      ++operation.buffer;
      operation.offset = 0;
      continue;
    }
    const int slot = free_slots_.back();
    free_slots_.pop_back();
    begin_piece(operation, slot);
    begun = true;
  }
  return begun;
}

void ShareLane::begin_piece(Operation& operation, int slot) {
  Piece& piece = pieces_.emplace_back(
      Piece{.parts = {}, .buffer = operation.buffer, .offset = operation.offset, .slot = slot});
  operation.offset += piece_of(operation);
  for (int peer = 0; peer < operation.ranks->size(); ++peer) {
    if (peer != operation.ranks->rank()) exchange(piece, operation, peer);
  }
}

// A sum sends the peer's share and receives addends of this rank's share; a gather does the opposite.
void ShareLane::exchange(Piece& piece, const Operation& operation, int peer) {
  Communicator& ranks = *operation.ranks;
  const SharedBuffer& buffer = operation.buffers[piece.buffer];
  const auto share_of = [&](int rank) {
    return part_of(buffer.shares[rank], piece.offset, piece_of(operation));
  };
  const auto bytes_of = [&](std::byte* first, std::int64_t begin, std::int64_t count) {
    return std::span(first + begin * static_cast<std::int64_t>(operation.element),
                     static_cast<std::size_t>(count) * operation.element);
  };
  const auto theirs = share_of(peer), mine = share_of(ranks.rank());
  const int member = ranks.world_rank(peer);
  const auto [sent, received] = operation.sums ? std::pair(theirs, mine) : std::pair(mine, theirs);
  if (sent.count > 0) {
    const auto bytes = bytes_of(buffer.elements, sent.begin, sent.count);
    piece.parts.push_back(
        {ranks.send(bytes, peer, channel_), {true, member, channel_, static_cast<Bytes>(bytes.size())}});
  }
  if (received.count > 0) {
    const auto bytes = operation.sums ? bytes_of(room_of(operation, piece.slot, peer), 0, received.count)
                                      : bytes_of(buffer.elements, received.begin, received.count);
    piece.parts.push_back(
        {ranks.receive(bytes, peer, channel_), {false, member, channel_, static_cast<Bytes>(bytes.size())}});
  }
}

bool ShareLane::end_pieces() {
  bool ended = false;
  const Operation& operation = operations_.front();
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const std::size_t before = piece->parts.size();
    std::erase_if(piece->parts, [](Part& part) { return part.request.test(); });
    ended |= piece->parts.size() < before;
    if (!piece->parts.empty()) {
      ++piece;
      continue;
    }
    if (operation.sums) sum_piece(operation, *piece);
    free_slots_.push_back(piece->slot);
    piece = pieces_.erase(piece);
    ended = true;
  }
  return ended;
}

void ShareLane::sum_piece(const Operation& operation, const Piece& piece) const {
  const Communicator& ranks = *operation.ranks;
  const SharedBuffer& buffer = operation.buffers[piece.buffer];
  const auto mine = part_of(buffer.shares[ranks.rank()], piece.offset, piece_of(operation));
  if (mine.count == 0) return;
  std::byte* own = buffer.elements + mine.begin * static_cast<std::int64_t>(operation.element);
  std::vector<void*> addends;
  for (int rank = 0; rank < ranks.size(); ++rank)
    addends.push_back(rank == ranks.rank() ? own : room_of(operation, piece.slot, rank));
  const auto count = static_cast<std::size_t>(mine.count);
  if (is_on_device(own)) {
    for_tree(addends, [&](void* into, const void* from) {
      backend::device_memory()->add(into, from, count, operation.element);
    });
  } else {
    combine_tree(addends, count, type_, Reduction::Sum);
  }
  copy_anywhere(own, {static_cast<const std::byte*>(addends.front()), count * operation.element});
}

// Pieces of sums must fit into the room; a single rank needs none.
std::int64_t ShareLane::piece_of(const Operation& operation) const {
  if (!operation.sums || operation.ranks->size() == 1) return limits_.piece;
  const auto blocks = std::int64_t{limits_.window} * (operation.ranks->size() - 1);
  const auto room = static_cast<std::int64_t>(room_.size() / operation.element) / blocks;
  PENSTOCK_CHECK(room > 0, "a sum has room");
  return std::min(limits_.piece, room);
}

std::byte* ShareLane::room_of(const Operation& operation, int slot, int peer) const {
  const Communicator& ranks = *operation.ranks;
  const std::int64_t block = std::int64_t{slot} * (ranks.size() - 1) + peer - (peer > ranks.rank() ? 1 : 0);
  return room_.data() + block * piece_of(operation) * static_cast<std::int64_t>(operation.element);
}

void ShareLane::wait(Ticket ticket, const std::function<bool()>& meanwhile) {
  const auto advance_all = [&] {
    bool moved = advance();
    if (!done(ticket) && meanwhile) moved |= as_part_of(std::string(operations_.front().name), meanwhile);
    return moved;
  };
  const auto awaited = [&] {
    const auto& [request, message] = pieces_.front().parts.front();
    return Awaited{message, operations_.front().name, request.progress()};
  };
  advance_until([&] { return done(ticket); }, advance_all, awaited, timeout_);
}

}  // namespace penstock::comm
