// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/gathered_share.h"

#include <algorithm>
#include <cstdint>

#include "files/parted_file.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

constexpr std::size_t kGatheredPart = std::size_t{8} << 20;
constexpr int kGatherChannel = static_cast<int>(schedule::Channel::Control);

// Of the file.
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

// visit(first byte, bytes) of each message that a piece of the file takes.
template <class Visit>
void for_gathered_parts(std::size_t size, Visit&& visit) {
  for (std::size_t first = 0; first < size; first += kGatheredPart)
    visit(first, std::min(kGatheredPart, size - first));
}

void send_share(const FileShare& share, comm::World world) {
  const std::vector<Place> places = places_of(share);
  const auto count = static_cast<std::int64_t>(places.size());
  world->send(comm::bytes_of(count), 0, kGatherChannel).wait();
  if (places.empty()) return;
  world->send(std::as_bytes(std::span(places)), 0, kGatherChannel).wait();
  for_pieces(share, [&](std::uint64_t, std::span<const std::byte> bytes) {
    for_gathered_parts(bytes.size(), [&](std::size_t first, std::size_t size) {
      world->send(bytes.subspan(first, size), 0, kGatherChannel).wait();
    });
  });
}

void receive_share(files::PartedFile& file, int from, std::vector<std::byte>& buffer, comm::World world) {
  std::int64_t count = 0;
  world->receive(comm::writable_bytes_of(count), from, kGatherChannel).wait();
  if (count == 0) return;
  std::vector<Place> places(static_cast<std::size_t>(count));
  world->receive(std::as_writable_bytes(std::span(places)), from, kGatherChannel).wait();
  for (const Place& place : places) {
    for_gathered_parts(place.bytes, [&](std::size_t first, std::size_t size) {
      buffer.resize(std::max(buffer.size(), size));
      const std::span<std::byte> message = std::span(buffer).first(size);
      world->receive(message, from, kGatherChannel).wait();
      file.write(place.begin + first, message);
    });
  }
}

}  // namespace

void write_gathered_share(const std::string& path, const FileShare& share, comm::World world) {
  if (world->rank() != 0) return send_share(share, world);
  files::PartedFile file(path, share.layout.size);
  file.write(0, share.layout.head);
  for_pieces(share, [&](std::uint64_t begin, std::span<const std::byte> bytes) { file.write(begin, bytes); });
  std::vector<std::byte> buffer;
  for (int rank = 1; rank < world->size(); ++rank) receive_share(file, rank, buffer, world);
  file.flush();
}

}  // namespace penstock::train
