// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files: scalar curves over steps.
//
// Each record is u64 length, u32 masked CRC-32C of the length, the bytes, u32 masked CRC-32C of the bytes
// (TFRecord). The bytes are a protobuf Event; only the few fields that curves need are encoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::files {

using NamedNumber = std::pair<std::string, double>;

class EventFile {
 public:
  // Creates a new file with a unique name in the directory. It records that the run continues after
  // `last_step` (0: starts), so TensorBoard drops later steps of the directory's older files. Throws RunError
  // if it cannot be written.
  EventFile(const std::string& directory, std::int64_t last_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Curves are named like "train/loss"; TensorBoard groups them by the part before the slash. The data is
  // written when the call returns.
  void write(std::int64_t step, std::span<const NamedNumber> numbers);

  const std::string& path() const { return path_; }

 private:
  void write_start(std::int64_t last_step);
  void write_record(std::string_view event);

  std::string path_;
  int descriptor_ = -1;
};

// The bytes of one record.
std::string event_record(std::string_view event);

}  // namespace penstock::files
