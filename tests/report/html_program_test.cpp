// SPDX-License-Identifier: Apache-2.0
// The page's data, decoded by a reader that was written from the description in html_program.h.
#include "report/html_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/example_reports.h"
#include "report/json_reader.h"

namespace penstock::report {
namespace {

class ColumnReader {
 public:
  explicit ColumnReader(const std::string& base64) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned group = 0, bits = 0;
    for (const char c : base64) {
      if (c == '=') break;
      group = group << 6 | static_cast<unsigned>(digits.find(c));
      if ((bits += 6) >= 8) bytes_.push_back(group >> (bits -= 8) & 255);
    }
  }
  std::uint64_t next() {
    std::uint64_t value = 0;
    int shift = 0;
    for (; bytes_.at(at_) & 128; shift += 7) value |= std::uint64_t{bytes_[at_++] & 127u} << shift;
    return value | std::uint64_t{bytes_.at(at_++)} << shift;
  }
  std::int64_t next_signed() {
    const std::uint64_t value = next();
    return value & 1 ? -static_cast<std::int64_t>(value / 2) - 1 : static_cast<std::int64_t>(value / 2);
  }
  std::vector<std::int64_t> sums(std::size_t count) {
    std::vector<std::int64_t> values(count);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t difference = next_signed();
      const std::size_t repeats = difference == 0 ? next() : 0;
      values[i] = sum += difference;
      for (std::size_t k = 0; k < repeats; ++k) values.at(++i) = sum;
    }
    return values;
  }
  std::vector<std::int64_t> plain(std::size_t count) {
    std::vector<std::int64_t> values(count);
    for (auto& value : values) value = static_cast<std::int64_t>(next());
    return values;
  }
  bool finished() const { return at_ == bytes_.size(); }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
};

TEST(PageData, HoldsEveryFieldOfEveryOp) {
  for (const auto& program : {example_program("slimpipe", 4, 2, 5), example_program("zb-h1", 3, 4, 1)}) {
    const Json json = read_json(program_json(program));
    for (int d = 0; d < program.device_count(); ++d) {
      ColumnReader reader(json["devices"][d].text);
      const auto& ops = program.devices[d].ops;
      ASSERT_EQ(reader.next(), ops.size());
      const auto kind = reader.plain(ops.size()), stage = reader.sums(ops.size()),
                 micro_batch = reader.sums(ops.size());
      const auto slice = reader.sums(ops.size()), peer = reader.plain(ops.size()),
                 size = reader.plain(ops.size());
      const auto waits = reader.plain(ops.size());
      for (std::size_t i = 0; i < ops.size(); ++i) {
        EXPECT_EQ(kind[i], static_cast<int>(ops[i].kind));
        EXPECT_EQ(std::tuple(stage[i], micro_batch[i], slice[i], peer[i] - 1),
                  std::tuple(ops[i].key.stage, ops[i].key.micro_batch, ops[i].key.slice, ops[i].peer));
        EXPECT_EQ(json["sizes"][size[i]].number, ops[i].bytes);
        ASSERT_EQ(waits[i], ops[i].after_count);
        for (const std::uint32_t wait : program.devices[d].after_of(ops[i]))
          EXPECT_EQ(i - reader.next(), wait);
      }
      EXPECT_TRUE(reader.finished());
    }
  }
}

TEST(PageData, HoldsEveryTimeToATick) {
  const auto program = example_program("slimpipe", 4, 2, 4);
  const auto timeline = PaperClock(program, example_seconds(0.4)).run();
  const Seconds tick = timeline.makespan() / 5000;
  const Json json = read_json(events_json(program, timeline, tick));
  for (int d = 0; d < program.device_count(); ++d) {
    ColumnReader reader(json[d].text);
    std::array<std::int64_t, schedule::kLanes> ended{};
    for (std::size_t op = 0; op < timeline.devices[d].size(); ++op) {
      const auto& event = timeline.devices[d][op];
      auto& before = ended[static_cast<std::size_t>(lane_of(program.devices[d].ops[op].kind))];
      const auto start = before + reader.next_signed();
      before = start + static_cast<std::int64_t>(reader.next());
      EXPECT_NEAR(start * tick, event.start, 0.51 * tick);
      EXPECT_NEAR(before * tick, event.end, 0.51 * tick);
    }
    EXPECT_TRUE(reader.finished());
  }
}

TEST(PageData, SharesOfTimeAddUpToTheBusyTime) {
  const auto program = example_program("zb-h1", 4, 6, 1);
  const auto timeline = PaperClock(program, example_seconds(0.4)).run();
  const std::size_t slots = 70, kinds = compute_kinds().size();
  const Json json = read_json(shares_json(program, timeline, slots));
  for (int d = 0; d < program.device_count(); ++d) {
    const auto bytes = ColumnReader(json[d].text).bytes();
    ASSERT_EQ(bytes.size(), slots * kinds);
    Seconds busy = 0;
    for (std::size_t op = 0; op < timeline.devices[d].size(); ++op) {
      if (lane_of(program.devices[d].ops[op].kind) == schedule::Lane::Compute)
        busy += timeline.devices[d][op].end - timeline.devices[d][op].start;
    }
    const double shares = std::accumulate(bytes.begin(), bytes.end(), 0.0) / 255;
    EXPECT_NEAR(shares * timeline.makespan() / slots, busy, 0.01 * timeline.makespan());
  }
}

TEST(PageData, ThinnedMemoryKeepsThePeakAndTheEnd) {
  MemorySeries memory{{"a", "b"}, {}, {{}, {}}};
  for (int i = 0; i < 5000; ++i) {
    memory.times.push_back(i * 1e-3);
    memory.bytes[0].push_back(i == 3217 ? 9'000'000 : 1000 + i % 17);
    memory.bytes[1].push_back(500);
  }
  const Json json = read_json(memory_json(memory, 1e-3, 100));
  ColumnReader reader(json["data"].text);
  const std::size_t count = reader.next();
  EXPECT_LE(count, 100u);
  const auto times = reader.sums(count), first = reader.sums(count), second = reader.sums(count);
  const auto peak = std::ranges::max_element(first) - first.begin();
  EXPECT_EQ(times[peak], 3217);
  EXPECT_EQ(first[peak], 9'000'000);
  EXPECT_EQ(times.back(), 4999);
  EXPECT_EQ(first.back(), 1000 + 4999 % 17);
  EXPECT_EQ(second.front(), 500);
  EXPECT_TRUE(reader.finished());
}

TEST(PageData, LargeMemoryIsKeptToAMillionth) {
  const MemorySeries memory{{"a"}, {0, 1}, {{Bytes{80} * GiB + 12345, 3}}};
  const Json json = read_json(memory_json(memory, 1e-3, 100));
  ColumnReader reader(json["data"].text);
  reader.sums(0);
  const std::size_t count = reader.next();
  reader.sums(count);
  const double kept = reader.sums(count)[0] * json["unit"].number;
  EXPECT_NEAR(kept / (80.0 * GiB + 12345), 1, 1e-6);
}

}  // namespace
}  // namespace penstock::report
