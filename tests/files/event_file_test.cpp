// SPDX-License-Identifier: Apache-2.0
#include "files/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "files/crc32c.h"
#include "scratch.h"

namespace penstock::files {
namespace {

// CRC-32C bit by bit, and the format's mask.
std::uint32_t plain_masked_crc(std::string_view bytes) {
  std::uint32_t rest = 0xFFFFFFFF;
  for (const char byte : bytes) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (0x82F63B78 * (rest & 1));
  }
  rest ^= 0xFFFFFFFF;
  return ((rest >> 15) | (rest << 17)) + 0xA282EAD8u;
}

template <class T>
T take(std::string_view& bytes) {
  T value{};
  EXPECT_GE(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::vector<std::string_view> records_of(std::string_view file) {
  std::vector<std::string_view> records;
  while (!file.empty()) {
    const std::string_view length = file.substr(0, 8);
    const auto size = take<std::uint64_t>(file);
    EXPECT_EQ(take<std::uint32_t>(file), plain_masked_crc(length));
    records.push_back(file.substr(0, size));
    file.remove_prefix(size);
    EXPECT_EQ(take<std::uint32_t>(file), plain_masked_crc(records.back()));
  }
  return records;
}

// A protobuf message as field number and bytes; numbers as their bytes.
std::multimap<int, std::string> fields_of(std::string_view message) {
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>(message);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  std::multimap<int, std::string> fields;
  while (!message.empty()) {
    const std::uint64_t key = varint();
    std::uint64_t size = (key & 7) == 1 ? 8 : 4;
    if ((key & 7) == 2) size = varint();
    const std::string value =
        (key & 7) == 0 ? std::to_string(varint()) : std::string(message.substr(0, size));
    if ((key & 7) != 0) message.remove_prefix(size);
    fields.emplace(static_cast<int>(key >> 3), value);
  }
  return fields;
}

float float_of(std::string_view bytes) { return take<float>(bytes); }

TEST(Crc32c, KnowsTheNumbersOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, HasARecordForEachStepAsSoonAsItIsWritten) {
  const Scratch scratch;
  EventFile file(scratch.path(), 0);
  for (std::int64_t step : {1, 2, 300}) {
    const NamedNumber numbers[] = {{"train/loss", 5.5 / static_cast<double>(step)}, {"speed", 1e3}};
    file.write(step, numbers);
    const std::string bytes = scratch.read(std::filesystem::path(file.path()).filename().string());
    const auto event = fields_of(records_of(bytes).back());
    EXPECT_EQ(event.find(2)->second, std::to_string(step));
    const auto summary = fields_of(event.find(5)->second);
    ASSERT_EQ(summary.count(1), 2u);
    const auto value = fields_of(summary.find(1)->second);
    EXPECT_EQ(value.find(1)->second, "train/loss");
    EXPECT_EQ(float_of(value.find(2)->second), static_cast<float>(5.5 / static_cast<double>(step)));
  }
}

// Also of one that begins again at step 1, next to the curves of the attempt before.
TEST(EventFile, BeginsWithItsVersionAndSaysWhereARunGoesOn) {
  const Scratch scratch;
  std::string before;
  for (const std::int64_t last_step : {0, 7, 0}) {
    const EventFile file(scratch.path(), last_step);
    EXPECT_NE(file.path(), before);
    before = file.path();
    const std::string bytes = contents_of(before);
    ASSERT_EQ(records_of(bytes).size(), 2u);
    EXPECT_EQ(fields_of(records_of(bytes)[0]).find(3)->second, "brain.Event:2");
    const auto start = fields_of(records_of(bytes)[1]);
    EXPECT_EQ(start.find(2)->second, std::to_string(last_step + 1));
    EXPECT_EQ(fields_of(start.find(7)->second).find(1)->second, "1");
  }
}

// TensorBoard reads files in the order of their names, also where the clock was ahead or a file is a user's.
TEST(EventFile, IsNamedAfterAllThatAreThere) {
  const Scratch scratch;
  scratch.write("events.out.tfevents.4000000000.n1.9.0", "");
  scratch.write("events.out.tfevents.99999999999999999.n1.9.0", "");
  scratch.write("events.out.tfevents.mine", "");
  for (const char* seconds : {"4000000001", "4000000002"}) {
    const EventFile file(scratch.path(), 7);
    EXPECT_NE(file.path().find(std::string("/events.out.tfevents.") + seconds + "."), std::string::npos)
        << file.path();
  }
}

TEST(EventFile, NamesADirectoryThatItCannotWriteTo) {
  EXPECT_NE(failure<RunError>([] { EventFile("/proc/none", 0); }).find("/proc/none/events.out.tfevents."),
            std::string::npos);
}

TEST(EventFile, LeavesNoFileThatCouldNotBeBegun) {
  for (int at = 0; at < 3; ++at) {
    const Scratch scratch;
    const FaultyFiles full(at);
    EXPECT_NE(failure<RunError>([&] { EventFile(scratch.path(), 7); }).find("No space left"),
              std::string::npos);
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << at;
  }
}

}  // namespace
}  // namespace penstock::files
