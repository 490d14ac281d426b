// SPDX-License-Identifier: Apache-2.0
// A copy in host memory that outlives the process: a mapped file of an in-memory file system.
//
// The file has a head, a text area of fixed size, and the bytes. The head says whether the rest is complete;
// it is written last and invalidated first, so a process killed at any moment leaves a copy that is complete
// or marked as incomplete. The head has the text's checksum; the text must have that of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace penstock::train {

class CopySlot {
 public:
  // Creates the file and reserves all of its memory. Throws RunError naming the path and the bytes requested.
  CopySlot(std::string path, Bytes text_room, Bytes bytes);
  ~CopySlot();  // also removes the file if it is incomplete
  CopySlot(CopySlot&& other) noexcept;
  CopySlot& operator=(CopySlot&&) = delete;

  // Everything after the head, as it is sent to another host.
  std::span<std::byte> contents();
  std::span<std::byte> bytes();
  void set_text(std::string_view text);  // at most text_room bytes

  void take_back();
  void complete();
  void remove();  // unlinks the file; the mapping stays

 private:
  std::span<std::byte> room() { return contents().first(room_); }

  std::string path_;
  std::size_t room_ = 0, size_ = 0;  // bytes: of the text area; of the file
  std::byte* data_ = nullptr;
};

// Contents of a slot's file, if the file is complete and its text undamaged.
struct SlotContents {
  std::string_view text;
  std::span<const std::byte> bytes;
};
std::optional<SlotContents> contents_of_slot(std::span<const std::byte> file);

}  // namespace penstock::train
