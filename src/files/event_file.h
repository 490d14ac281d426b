// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: curves of numbers over steps.
//
// A file is records, each u64 length, u32 masked CRC-32C of the length, the bytes, u32 masked CRC-32C of the
// bytes (TFRecord). The bytes are a protobuf message Event; the few fields that curves need are encoded here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::files {

using NamedNumber = std::pair<std::string_view, double>;

class EventFile {
 public:
  // Begins a new file in the directory, with a name of its own. A run that goes on after `last_step` says so,
  // and TensorBoard drops the later steps of the directory's older files. RunError when it cannot be written.
  EventFile(const std::string& directory, std::int64_t last_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Curves are named as in "train/loss"; TensorBoard groups by what stands before the stroke. Written before
  // the call returns.
  void write(std::int64_t step, std::span<const NamedNumber> numbers);

  const std::string& path() const { return path_; }

 private:
  void write_record(std::string_view event);

  std::string path_;
  int descriptor_ = -1;
};

// The bytes of one record of the file.
std::string event_record(std::string_view event);

}  // namespace penstock::files
