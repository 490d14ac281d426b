// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/host_copies.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "comm/launcher.h"
#include "comm/rank_names.h"
#include "comm/texts.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "schedule/program.h"
#include "train/checkpoint/state_copy.h"
#include "train/checkpoint/state_shares.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr int kCopyChannel = schedule::kChannels;  // the first that no schedule uses
constexpr std::size_t kCopiedPart = std::size_t{64} << 20;
constexpr std::size_t kSlots = 2;
constexpr Bytes kRoomToGrow = 8192;  // of a text whose numbers get longer, and which gets a step's line

std::string new_start() {
  std::random_device random;
  return files::checksum_text((std::uint64_t{random()} << 32) | random());
}

template <class Visit>
void for_copied_parts(std::span<std::byte> contents, Visit&& visit) {
  for (std::size_t first = 0; first < contents.size(); first += kCopiedPart)
    visit(contents.subspan(first, std::min(kCopiedPart, contents.size() - first)));
}

// The rank on the next host that keeps each rank's copy; none where there is one host.
std::vector<std::optional<int>> neighbours_of(const std::vector<std::vector<int>>& hosts, int ranks) {
  std::vector<std::optional<int>> neighbours(static_cast<std::size_t>(ranks));
  if (hosts.size() == 1) return neighbours;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<int>& next = hosts[(host + 1) % hosts.size()];
    for (std::size_t i = 0; i < hosts[host].size(); ++i) neighbours[hosts[host][i]] = next[i % next.size()];
  }
  return neighbours;
}

void remove_others(const std::string& directory, const std::string& start) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with(start)) fs::remove(entry.path(), error);
  }
}

}  // namespace

HostCopies::HostCopies(Setting setting, const std::vector<CheckpointFile>& files,
                       std::vector<FileShare> shares, const CheckpointFacts& facts, comm::World world)
    : setting_(std::move(setting)),
      shares_(std::move(shares)),
      world_(world),
      start_(comm::broadcast_text(new_start(), 0, *world)) {
  make_private_directory(setting_.directory);
  for (const CheckpointFile& file : files) {
    FileSums& sums = files_.emplace_back(FileSums{.file = file.name, .tensors{}});
    for (const CheckpointTensor& tensor : file.tensors) sums.tensors.emplace_back(tensor.name, 0);
  }
  const Bytes room = std::ssize(text_of(
                         1, [&] { return facts; }, 0)) +
                     kRoomToGrow;
  const Bytes bytes = bytes_in(shares_);
  own_ = make_slots(world_->rank(), room, bytes);
  pair_up(room, bytes);
}

HostCopies::Slots HostCopies::make_slots(int owner, Bytes text_room, Bytes bytes) {
  Slots slots;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::string name = start_ + "-" + std::to_string(owner) + "-" + std::to_string(slot);
    slots.emplace_back((fs::path(setting_.directory) / name).string(), text_room, bytes);
    bytes_ += text_room + bytes;
  }
  return slots;
}

void HostCopies::pair_up(Bytes text_room, Bytes bytes) {
  const std::vector<std::vector<int>> hosts =
      comm::ranks_by_host(comm::all_texts(comm::host_name(), *world_));
  first_on_host_ = std::ranges::any_of(
      hosts, [&](const std::vector<int>& ranks) { return ranks.front() == world_->rank(); });
  const auto neighbours = neighbours_of(hosts, world_->size());
  neighbour_ = neighbours[world_->rank()];
  const std::array<Bytes, 2> mine{text_room, bytes};
  std::vector<std::array<Bytes, 2>> sizes(static_cast<std::size_t>(world_->size()));
  world_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(sizes)));
  for (int owner = 0; owner < world_->size(); ++owner) {
    if (neighbours[owner] != world_->rank()) continue;
    kept_.push_back({owner, make_slots(owner, sizes[owner][0], sizes[owner][1])});
  }
}

std::string HostCopies::text_of(std::int64_t step, const std::function<CheckpointFacts()>& facts,
                                std::uint64_t sum) {
  StateCopy copy{.start = start_,
                 .step = step,
                 .ranks = world_->size(),
                 .rank = world_->rank(),
                 .tensors = copied_tensors(shares_),
                 .sum = sum};
  if (world_->rank() == 0) {
    CheckpointFacts with_files = facts();
    with_files.files = files_;
    copy.checkpoint = to_json(with_files);
  }
  return to_json(copy);
}

void HostCopies::after_step(std::int64_t step, const std::function<CheckpointFacts()>& facts) {
  settle();
  if (step % setting_.every != 0) return;
  begin(step, facts);
  if (setting_.every == 1) settle();
}

void HostCopies::begin(std::int64_t step, const std::function<CheckpointFacts()>& facts) {
  // All ranks have settled the round before: they have exchanged messages since.
  if (rounds_ == 1 && first_on_host_) remove_others(setting_.directory, start_);
  CopySlot& own = own_[rounds_ % kSlots];
  own.take_back();
  for (Kept& kept : kept_) kept.slots[rounds_ % kSlots].take_back();
  copy_shares(shares_, own.bytes().data());
  own.set_text(text_of(step, facts, files::checksum(own.bytes())));
  own.complete();
  post(own);
  ++rounds_;
}

void HostCopies::post(CopySlot& own) {
  for (Kept& kept : kept_) {
    for_copied_parts(kept.slots[rounds_ % kSlots].contents(), [&](std::span<std::byte> message) {
      requests_.push_back(world_->receive(message, kept.owner, kCopyChannel));
    });
  }
  if (!neighbour_) return;
  for_copied_parts(own.contents(), [&](std::span<std::byte> message) {
    requests_.push_back(world_->send(message, *neighbour_, kCopyChannel));
  });
}

void HostCopies::settle() {
  if (requests_.empty()) return;
  comm::as_part_of("copies in other hosts' memory", [&] {
    for (comm::Request& request : requests_) request.wait();
  });
  requests_.clear();
  for (Kept& kept : kept_) kept.slots[(rounds_ - 1) % kSlots].complete();
}

void HostCopies::remove() {
  settle();
  world_->barrier();  // none is removed while another may still fail
  for (CopySlot& slot : own_) slot.remove();
  for (Kept& kept : kept_) {
    for (CopySlot& slot : kept.slots) slot.remove();
  }
  if (first_on_host_) remove_others(setting_.directory, start_);
  std::error_code error;
  fs::remove(setting_.directory, error);  // by the last rank of the host
}

void make_private_directory(const std::string& directory) {
  std::error_code error;
  if (files::make_directories(directory) != 0) error = {errno, std::generic_category()};
  if (!error) fs::permissions(directory, fs::perms::owner_all, error);
  if (error)
    throw RunError(directory + " cannot be made: " + error.message() +
                   "; train.buddy_dir names the folder of a file system in memory");
}

std::string copies_directory(const std::string& memory, const std::string& output_directory,
                             comm::World world) {
  std::error_code error;
  const std::string path =
      comm::broadcast_text(fs::weakly_canonical(output_directory, error).string(), 0, *world);
  return (fs::path(memory) / ("penstock-" + files::checksum_text(files::checksum(path)))).string();
}

void clear_copies(const std::string& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
}

}  // namespace penstock::train
