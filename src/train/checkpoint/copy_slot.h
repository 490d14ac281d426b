// SPDX-License-Identifier: Apache-2.0
// A copy in the host's memory that outlives the process: a file of a file system in memory, mapped.
//
// The file is a head, then a text of a fixed room, then bytes. The head says whether the rest is whole; it is
// written last and taken back first, so that a process that is killed at any moment leaves a copy that is
// whole or says that it is not. It has the text's checksum; the text is to have that of the bytes.
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
  // Makes the file, with all of its memory. Throws RunError naming the path and the bytes wanted.
  CopySlot(std::string path, Bytes text_room, Bytes bytes);
  ~CopySlot();  // removes the file, too, when it is not whole
  CopySlot(CopySlot&& other) noexcept;
  CopySlot& operator=(CopySlot&&) = delete;

  // Everything behind the head, as it goes to another host.
  std::span<std::byte> contents();
  std::span<std::byte> bytes();
  void set_text(std::string_view text);  // at most the room

  void take_back();
  void complete();
  void remove();  // the file's name

 private:
  std::span<std::byte> room() { return contents().first(room_); }

  std::string path_;
  std::size_t room_ = 0, size_ = 0;  // of the text; of the file
  std::byte* data_ = nullptr;
};

// What a slot's file holds, when it is whole and its text undamaged.
struct SlotContents {
  std::string_view text;
  std::span<const std::byte> bytes;
};
std::optional<SlotContents> contents_of_slot(std::span<const std::byte> file);

}  // namespace penstock::train
