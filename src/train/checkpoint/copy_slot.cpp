// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/copy_slot.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "files/checksum.h"
#include "files/file_system.h"

namespace penstock::train {
namespace {

constexpr std::uint64_t kWhole = 0x59504f434b4e4550;  // "PENKCOPY", little-endian

struct Head {
  std::uint64_t whole = 0;  // kWhole if the rest may be read
  std::uint64_t room = 0, bytes = 0;
  std::uint64_t text_sum = 0;  // of the text area
};

std::atomic_ref<std::uint64_t> mark_in(std::byte* file) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(file));
}

// The text ends at the first zero byte of its area.
std::string_view text_in(std::span<const std::byte> room) {
  const std::string_view text(reinterpret_cast<const char*>(room.data()), room.size());
  return text.substr(0, text.find('\0'));
}

}  // namespace

CopySlot::CopySlot(std::string path, Bytes text_room, Bytes bytes)
    : path_(std::move(path)),
      room_(static_cast<std::size_t>(text_room)),
      size_(sizeof(Head) + room_ + static_cast<std::size_t>(bytes)) {
  files::FileSystem& disk = files::file_system();
  const int file = disk.open(path_, files::OpenFor::Mapping);
  if (file < 0) files::fail_to("cannot be written", path_);
  const auto size = static_cast<std::int64_t>(size_);
  void* mapped = MAP_FAILED;
  // Reserves all memory now: if it ran out later, the process would end without a message.
  if (disk.resize(file, size) == 0 && disk.reserve(file, size) == 0)
    mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    disk.remove(path_);
    errno = reason;
    files::fail_to("cannot be written", path_, size_);
  }
  data_ = static_cast<std::byte*>(mapped);
  const Head head{.whole = 0, .room = room_, .bytes = static_cast<std::uint64_t>(bytes)};
  std::memcpy(data_, &head, sizeof head);
}

CopySlot::~CopySlot() {
  if (data_ == nullptr) return;
  if (mark_in(data_).load() != kWhole) remove();
  munmap(data_, size_);
}

CopySlot::CopySlot(CopySlot&& other) noexcept
    : path_(std::move(other.path_)),
      room_(other.room_),
      size_(other.size_),
      data_(std::exchange(other.data_, nullptr)) {}

std::span<std::byte> CopySlot::contents() { return {data_ + sizeof(Head), size_ - sizeof(Head)}; }

std::span<std::byte> CopySlot::bytes() { return contents().subspan(room_); }

void CopySlot::set_text(std::string_view text) {
  PENSTOCK_CHECK(text.size() <= room_, "a copy's text fits its room");
  std::byte* end = std::ranges::copy(std::as_bytes(std::span(text)), room().data()).out;
  std::fill(end, bytes().data(), std::byte{0});
}

void CopySlot::take_back() { mark_in(data_).store(0); }

void CopySlot::complete() {
  const std::uint64_t sum = files::checksum(room());
  std::memcpy(data_ + offsetof(Head, text_sum), &sum, sizeof sum);
  mark_in(data_).store(kWhole);
}

void CopySlot::remove() { files::file_system().remove(path_); }

std::optional<SlotContents> contents_of_slot(std::span<const std::byte> file) {
  Head head;
  if (file.size() < sizeof head) return {};
  std::memcpy(&head, file.data(), sizeof head);
  file = file.subspan(sizeof head);
  if (head.whole != kWhole || head.room > file.size() || head.bytes != file.size() - head.room) return {};
  const std::span<const std::byte> room = file.first(head.room);
  if (files::checksum(room) != head.text_sum) return {};
  return SlotContents{text_in(room), file.subspan(head.room)};
}

}  // namespace penstock::train
