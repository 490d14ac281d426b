// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/gathered_share.h"

#include <algorithm>
#include <cstdint>

#include "files/parted_file.h"
#include "schedule/program.h"
#include "train/checkpoint/first_at_work.h"

namespace penstock::train {
namespace {

constexpr int kGatherChannel = static_cast<int>(schedule::Channel::Control);

// A piece of the file.
struct Place {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

std::vector<Place> places_of(const FileShare& share) {
  std::vector<Place> places;
  for_pieces(share, [&](std::uint64_t begin, std::span<const std::byte> bytes) {
    places.push_back({begin, bytes.size()});
  });
  return places;
}

void send_share(const FileShare& share, comm::World world) {
  const std::vector<Place> places = places_of(share);
  const auto count = static_cast<std::int64_t>(places.size());
  world->send(comm::bytes_of(count), 0, kGatherChannel).wait();
  if (places.empty()) return;
  world->send(std::as_bytes(std::span(places)), 0, kGatherChannel).wait();
  for_pieces(share, [&](std::uint64_t, std::span<const std::byte> bytes) {
    world->send(bytes, 0, kGatherChannel).wait();
  });
}

// Calls write(offset in the file, bytes) for each piece.
template <class Write>
void receive_share(int from, std::vector<std::byte>& buffer, comm::World world, Write&& write) {
  std::int64_t count = 0;
  world->receive(comm::writable_bytes_of(count), from, kGatherChannel).wait();
  if (count == 0) return;
  std::vector<Place> places(static_cast<std::size_t>(count));
  world->receive(std::as_writable_bytes(std::span(places)), from, kGatherChannel).wait();
  for (const Place& place : places) {
    buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(place.bytes)));
    const std::span<std::byte> message = std::span(buffer).first(place.bytes);
    world->receive(message, from, kGatherChannel).wait();
    write(place.begin, message);
  }
}

void write_for_all(const std::string& path, const FileShare& share, FirstAtWork& work, comm::World world) {
  files::PartedFile file(path, share.layout.size);
  int sender = 0;
  const auto write = [&](std::uint64_t begin, std::span<const std::byte> bytes) {
    file.write(begin, bytes);
    work.still_working(sender);
  };
  file.write(0, share.layout.head);
  for_pieces(share, write);
  std::vector<std::byte> buffer;
  for (sender = 1; sender < world->size(); ++sender) {
    work.give_turn(sender);
    receive_share(sender, buffer, world, write);
  }
  work.still_working();
  file.flush();
}

}  // namespace

void write_gathered_share(const std::string& path, const FileShare& share, comm::World world) {
  FirstAtWork work(world);
  if (world->rank() == 0) {
    write_for_all(path, share, work, world);
    work.done();
  } else {
    work.await_turn();
    send_share(share, world);
    work.await_end();
  }
}

}  // namespace penstock::train
