// SPDX-License-Identifier: Apache-2.0
// Costs from a table: seconds per (kind, stage, slice), bytes of records and messages, and the links.
//
// Text form, one entry a line, fields separated by blanks; "#" starts a comment, "*" stands for all, later
// lines override earlier ones:
//
//   F * * 0.010                    # kind stage slice seconds: F B I W LOSS OFFLOAD RELOAD REDUCE_GRAD STEP
//   F 3 7 0.0125
//   link * * 1e-5 25e9             # from to latency bytes-per-second ("inf": no limit)
//   message * 67108864             # slice bytes: of its hidden states; their gradients are as large
//   record * * 1048576 2097152 0   # stage slice record weight-record kv-gradient
//
// Links default to no time, messages and records to no bytes, which a table with a bandwidth must not leave
// out for all messages; the times of the actions that a program runs must be there.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

struct Link {
  Seconds latency = 0;
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

// Which stages, slices and devices a table speaks of.
struct TableExtent {
  int stages = 1;
  int slices = 1;  // the greatest number of any micro-batch
  int devices = 1;
};
TableExtent extent_of(const schedule::Program& program);
TableExtent extent_of(const schedule::Schedule& schedule);

class CostTable final : public Costs {
 public:
  explicit CostTable(const TableExtent& extent);

  // Numbers must lie in the extent.
  void set_seconds(schedule::OpKind kind, int stage, int slice, Seconds seconds);
  void set_link(int from, int to, const Link& link);
  void set_message(int slice, Bytes bytes);
  void set_record(int stage, int slice, const RecordBytes& bytes);

  // Throws InputError naming the first action of the program that has no time: "no time for B of stage 3,
  // slice 1".
  void require_complete(const schedule::Program& program) const;

  // Nothing when it is missing.
  std::optional<Seconds> find_seconds(schedule::OpKind kind, int stage, int slice) const;
  const Link& link(int from, int to) const;
  Bytes message(int slice) const { return messages_[slice]; }

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  // Of the bytes that the program's send has: sim/lowering.h gives it the table's.
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;

  const TableExtent& extent() const { return extent_; }

 private:
  std::size_t cell(int stage, int slice) const {
    return static_cast<std::size_t>(stage) * extent_.slices + slice;
  }

  TableExtent extent_;
  std::vector<std::vector<Seconds>> seconds_;  // [kind][stage * slices + slice]; negative: missing
  std::vector<RecordBytes> records_;           // [stage * slices + slice]
  std::vector<Bytes> messages_;                // [slice]
  std::vector<Link> links_;                    // [from * devices + to]
};

// The same stages with micro-batches in one slice: an action or a copy takes the sum of its slices' times,
// and has no time where one of them has none; what a stage or a device does, such as STEP, takes as long as
// before; a message has their bytes, or, where those are not known, takes as long as theirs one after the
// other. Without records.
CostTable without_slices(const CostTable& table);

// The mean of tables of one extent, each counted so often: of an action over those that have its time, and of
// other kinds and links' latencies over all. Without bytes; there is a table at least.
struct CountedTable {
  CostTable table;
  int count = 1;
};
CostTable mean_of(std::span<const CountedTable> tables);

// Throws InputError naming origin, line, the entry and what was expected.
CostTable parse_cost_table(std::string_view text, std::string_view origin, const TableExtent& extent);

}  // namespace penstock::sim
