// SPDX-License-Identifier: Apache-2.0
#include "files/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>

#include "base/clock.h"
#include "base/text.h"
#include "files/crc32c.h"
#include "files/directory.h"
#include "files/file_system.h"

namespace penstock::files {
namespace {

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueNumber = 2, kSessionStatus = 1;
constexpr std::uint64_t kSessionStarts = 1;
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;  // protobuf wire types

void put_varint(std::string& message, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}

template <class T>
void put_fixed(std::string& message, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  message.append(bytes.data(), bytes.size());
}

void put_key(std::string& message, int field, int type) {
  put_varint(message, static_cast<std::uint64_t>(field << 3 | type));
}

void put_bytes(std::string& message, int field, std::string_view bytes) {
  put_key(message, field, kBytes);
  put_varint(message, bytes.size());
  message += bytes;
}

std::string event_of(std::int64_t step) {
  std::string event;
  put_key(event, kWallTime, kFixed64);
  put_fixed(event, wall_seconds());
  put_key(event, kStep, kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::string summary_of(std::span<const NamedNumber> numbers) {
  std::string summary;
  for (const auto& [name, number] : numbers) {
    std::string value;
    put_bytes(value, kValueTag, name);
    put_key(value, kValueNumber, kFixed32);
    put_fixed(value, static_cast<float>(number));
    put_bytes(summary, kSummaryValue, value);
  }
  return summary;
}

// The masked CRC that the format stores, so that the CRC of data containing a CRC stays useful.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8; }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

constexpr std::string_view kStem = "events.out.tfevents.";

// The greatest number of seconds in the names of the directory's files; 0: none.
std::int64_t latest_named(const std::string& directory) {
  constexpr std::int64_t kLast = 9'999'999'999;  // with more digits, the order of names is another
  std::int64_t latest = 0;
  for (const std::filesystem::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(kStem)) continue;
    const std::string_view rest = std::string_view(name).substr(kStem.size());
    const std::int64_t seconds = parse_integer(rest.substr(0, rest.find('.'))).value_or(0);
    if (seconds < kLast) latest = std::max(latest, seconds);
  }
  return latest;
}

// TensorBoard reads the files of a directory in name order, and drops the steps of earlier starts that a
// later one repeats. So the name is later than the others' even if this host's clock is behind theirs.
std::string new_name(const std::string& directory, int number) {
  const auto seconds = std::max(static_cast<std::int64_t>(wall_seconds()), latest_named(directory) + 1);
  const std::string name = std::string(kStem) + std::to_string(seconds) + "." + host_name() + "." +
                           std::to_string(getpid()) + "." + std::to_string(number);
  return (std::filesystem::path(directory) / name).string();
}

}  // namespace

std::string event_record(std::string_view event) {
  std::string length, record;
  put_fixed(length, static_cast<std::uint64_t>(event.size()));
  record = length;
  put_fixed(record, masked(crc32c(length)));
  record += event;
  put_fixed(record, masked(crc32c(event)));
  return record;
}

EventFile::EventFile(const std::string& directory, std::int64_t last_step) {
  for (int number = 0; descriptor_ < 0; ++number) {
    path_ = new_name(directory, number);
    descriptor_ = file_system().open(path_, OpenFor::New);
    if (descriptor_ < 0 && errno != EEXIST) fail_to("cannot be written", path_);
  }
  try {
    write_start(last_step);
  } catch (...) {
    close(descriptor_);
    file_system().remove(path_);
    throw;
  }
}

void EventFile::write_start(std::int64_t last_step) {
  std::string version = event_of(0);
  put_bytes(version, kFileVersion, "brain.Event:2");
  write_record(version);
  std::string restart = event_of(last_step + 1), status;
  put_key(status, kSessionStatus, kVarint);
  put_varint(status, kSessionStarts);
  put_bytes(restart, kSessionLog, status);
  write_record(restart);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void EventFile::write(std::int64_t step, std::span<const NamedNumber> numbers) {
  std::string event = event_of(step);
  put_bytes(event, kSummary, summary_of(numbers));
  write_record(event);
}

void EventFile::write_record(std::string_view event) {
  const std::string record = event_record(event);
  write_all(descriptor_, std::as_bytes(std::span(record)), path_);
}

}  // namespace penstock::files
