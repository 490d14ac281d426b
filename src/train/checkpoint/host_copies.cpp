// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/host_copies.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "comm/launcher.h"
#include "comm/rank_names.h"
#include "comm/texts.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "schedule/program.h"
#include "train/checkpoint/run_number.h"
#include "train/checkpoint/state_copy.h"
#include "train/checkpoint/state_shares.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopiedPart = std::size_t{64} << 20;
constexpr std::size_t kSlots = 2;
constexpr Bytes kRoomToGrow = 8192;  // for longer numbers in the text, and for a step's line

template <class Visit>
void for_copied_parts(std::span<std::byte> contents, Visit&& visit) {
  for (std::size_t first = 0; first < contents.size(); first += kCopiedPart)
    visit(contents.subspan(first, std::min(kCopiedPart, contents.size() - first)));
}

// Whether the file is a complete copy of the run's state after this step.
bool is_copy_of(const std::string& run, std::int64_t step, const std::string& path) try {
  const files::MappedFile file(path);
  const auto contents = contents_of_slot(file.bytes());
  if (!contents) return false;
  const StateCopy facts = parse_state_copy(contents->text, path);
  return facts.run == run && facts.step == step;
} catch (const InputError&) {
  return false;
}

// Removes copies of other starts, except the run's copies of the state after `step`; 0: no exception.
void remove_others(const std::string& directory, const std::string& start, const std::string& run = {},
                   std::int64_t step = 0) {
  std::error_code error;
  for (const fs::path& entry : files::entries_of(directory)) {
    if (entry.filename().string().starts_with(start)) continue;
    if (step == 0 || !is_copy_of(run, step, entry.string())) fs::remove(entry, error);
  }
}

}  // namespace

HostCopies::HostCopies(Setting setting, const std::vector<CheckpointFile>& files,
                       std::vector<FileShare> shares, const CheckpointFacts& facts, comm::World world)
    : setting_(std::move(setting)),
      shares_(std::move(shares)),
      world_(world),
      start_(comm::broadcast_text(drawn_number(), 0, *world)) {
  make_private_directory(setting_.directory);
  for (const CheckpointFile& file : files) {
    FileSums& sums = files_.emplace_back(FileSums{.file = file.name, .tensors{}});
    for (const CheckpointTensor& tensor : file.tensors) sums.tensors.emplace_back(tensor.name, 0);
  }
  const Bytes room = std::ssize(text_of(
                         1, [&] { return facts; }, 0)) +
                     kRoomToGrow;
  pair_up(facts.step, room, bytes_in(shares_));
}

void HostCopies::add_slot(Slots& slots) const {
  const std::string name =
      start_ + "-" + std::to_string(slots.owner) + "-" + std::to_string(slots.slots.size());
  slots.slots.emplace_back((fs::path(setting_.directory) / name).string(), slots.text_room, slots.bytes);
}

void HostCopies::add_slots() {
  add_slot(own_);
  for (Slots& kept : kept_) add_slot(kept);
}

void HostCopies::pair_up(std::int64_t from, Bytes text_room, Bytes bytes) {
  const std::vector<std::vector<int>> hosts = comm::ranks_by_host(comm::all_texts(comm::host_id(), *world_));
  first_on_host_ = std::ranges::any_of(
      hosts, [&](const std::vector<int>& ranks) { return ranks.front() == world_->rank(); });
  if (first_on_host_) remove_others(setting_.directory, start_, setting_.run, from);
  const auto keepers = keepers_of(hosts);
  keeper_ = keepers[world_->rank()];
  const std::array<Bytes, 2> mine{text_room, bytes};
  std::vector<std::array<Bytes, 2>> sizes(static_cast<std::size_t>(world_->size()));
  // Also waits until the memory of failed starts is free.
  world_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(sizes)));
  own_ = {world_->rank(), text_room, bytes, {}};
  bytes_ = text_room + bytes;
  for (int owner = 0; owner < world_->size(); ++owner) {
    if (keepers[owner] != world_->rank()) continue;
    kept_.push_back({owner, sizes[owner][0], sizes[owner][1], {}});
    bytes_ += sizes[owner][0] + sizes[owner][1];
  }
  add_slots();
  if (from == 0) add_slots();
}

std::string HostCopies::text_of(std::int64_t step, const std::function<CheckpointFacts()>& facts,
                                std::uint64_t sum) {
  StateCopy copy{.run = setting_.run,
                 .start = start_,
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

// Removes the copies that the run resumed from, once new ones exist.
void HostCopies::replace_older() {
  // All ranks have settled the previous round, since they have exchanged messages after it.
  if (first_on_host_) remove_others(setting_.directory, start_);
  if (own_.slots.size() == kSlots) return;
  world_->barrier();  // until their memory is free
  add_slots();
}

void HostCopies::begin(std::int64_t step, const std::function<CheckpointFacts()>& facts) {
  if (rounds_ == 1) replace_older();
  CopySlot& own = own_.slots[rounds_ % kSlots];
  own.take_back();
  for (Slots& kept : kept_) kept.slots[rounds_ % kSlots].take_back();
  copy_shares(shares_, own.bytes().data());
  own.set_text(text_of(step, facts, files::checksum(own.bytes())));
  own.complete();
  post(own);
  ++rounds_;
}

void HostCopies::post(CopySlot& own) {
  for (Slots& kept : kept_) {
    for_copied_parts(kept.slots[rounds_ % kSlots].contents(), [&](std::span<std::byte> message) {
      requests_.push_back(world_->receive(message, kept.owner, kCopiesChannel));
    });
  }
  if (!keeper_) return;
  for_copied_parts(own.contents(), [&](std::span<std::byte> message) {
    requests_.push_back(world_->send(message, *keeper_, kCopiesChannel));
  });
}

void HostCopies::settle() {
  if (requests_.empty()) return;
  comm::as_part_of("copies in other hosts' memory", [&] { comm::wait_all(requests_); });
  requests_.clear();
  for (Slots& kept : kept_) kept.slots[(rounds_ - 1) % kSlots].complete();
}

Bytes HostCopies::touched() const { return bytes_ * std::min<Bytes>(rounds_, static_cast<Bytes>(kSlots)); }

void HostCopies::remove() {
  settle();
  world_->barrier();  // no copy is removed while another rank may still fail
  for (CopySlot& slot : own_.slots) slot.remove();
  for (Slots& kept : kept_) {
    for (CopySlot& slot : kept.slots) slot.remove();
  }
  if (first_on_host_) remove_others(setting_.directory, start_);
  std::error_code error;
  fs::remove(setting_.directory, error);  // succeeds for the last rank of the host
}

std::vector<std::optional<int>> keepers_of(const std::vector<std::vector<int>>& hosts) {
  std::vector<int> ranks;  // in host order
  std::size_t most = 0;
  for (const std::vector<int>& host : hosts) {
    ranks.insert(ranks.end(), host.begin(), host.end());
    most = std::max(most, host.size());
  }
  std::vector<std::optional<int>> keepers(ranks.size());
  if (hosts.size() == 1) return keepers;
  std::size_t next = 0;  // place of the first rank after the host
  for (const std::vector<int>& host : hosts) {
    next += host.size();
    const std::size_t others = ranks.size() - host.size();
    for (std::size_t i = 0; i < host.size(); ++i) {
      const std::size_t further = (most - host.size() + i) % others;
      keepers[host[i]] = ranks[(next + further) % ranks.size()];
    }
  }
  return keepers;
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
  // A relative path of which nothing exists yet would stay relative.
  const fs::path whole = fs::weakly_canonical(fs::absolute(output_directory, error), error);
  const std::string path = comm::broadcast_text(whole.string(), 0, *world);
  return (fs::path(memory) / ("penstock-" + files::checksum_text(files::checksum(path)))).string();
}

void clear_copies(const std::string& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
}

Bytes bytes_of_copies(const std::string& directory) {
  Bytes bytes = 0;
  std::error_code error;
  for (const fs::path& entry : files::entries_of(directory)) {
    const std::uintmax_t size = fs::file_size(entry, error);
    if (!error) bytes += static_cast<Bytes>(size);
  }
  return bytes;
}

}  // namespace penstock::train
