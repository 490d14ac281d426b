// SPDX-License-Identifier: Apache-2.0
// Costs from a table: seconds per (kind, stage, slice), bytes of records and messages, and the links.
//
// Text form, one entry per line, fields separated by blanks; "#" starts a comment, "*" means all, later lines
// override earlier ones:
//
//   F * * 0.010                    # kind stage slice seconds: all words of a program but those of messages
//   F 3 7 0.0125
//   link * * 1e-5 25e9             # from to latency bytes-per-second ("inf": no limit)
//   message * 67108864             # slice bytes: of its hidden states; their gradients are as large
//   record * * 1048576 2097152 0   # stage slice record weight-record kv-gradient
//
// Defaults: links take no time, messages and records have no bytes. A table with a bandwidth needs at least
// one message entry. The times of all actions that a program runs are required.
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

// The numbers of stages, slices and devices of a table.
struct TableExtent {
  int stages = 1;
  int slices = 1;  // maximum over the micro-batches
  int devices = 1;
};
TableExtent extent_of(const schedule::Program& program);
TableExtent extent_of(const schedule::Schedule& schedule);

// A table has a link for every two devices.
inline constexpr int kMostTableDevices = 4096;

class CostTable final : public Costs {
 public:
  // Throws InputError for more than kMostTableDevices.
  explicit CostTable(const TableExtent& extent);

  // Indices must be within the extent.
  void set_seconds(schedule::OpKind kind, int stage, int slice, Seconds seconds);
  void set_link(int from, int to, const Link& link);
  void set_message(int slice, Bytes bytes);
  void set_record(int stage, int slice, const RecordBytes& bytes);

  // For times measured in a run: kinds of ops that it lacks have no time, not 0 seconds.
  void leave_out_kinds_not_in(const schedule::Program& run);

  // Throws InputError for the first op of the program without a time: "no time for B of stage 3, slice 1".
  void require_complete(const schedule::Program& program) const;

  // Returns nothing if the time is missing.
  std::optional<Seconds> find_seconds(schedule::OpKind kind, int stage, int slice) const;
  const Link& link(int from, int to) const;
  Bytes message(int slice) const { return messages_[slice]; }

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  // Uses the bytes of the program's send, which sim/lowering.h takes from the table.
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;

  const TableExtent& extent() const { return extent_; }

 private:
  std::size_t cell(int stage, int slice) const {
    return static_cast<std::size_t>(stage) * extent_.slices + slice;
  }

  TableExtent extent_;
  bool measured_ = false;                      // in a run, which has no lines to add
  std::vector<std::vector<Seconds>> seconds_;  // [kind][stage * slices + slice]; negative: missing
  std::vector<RecordBytes> records_;           // [stage * slices + slice]
  std::vector<Bytes> messages_;                // [slice]
  std::vector<Link> links_;                    // [from * devices + to]
};

// The same stages with one slice per micro-batch. An action or copy takes the sum of its slices' times and is
// missing if one of them is. Ops of a stage or a device, such as STEP, take the same time. A message has the
// sum of the bytes or, if all are 0, takes as long as the slices' messages in sequence. Without records.
CostTable without_slices(const CostTable& table);

// The mean of tables with equal extents, weighted by their counts: of an action over the tables that have its
// time, of other kinds and of link latencies over all tables. Without bytes. `tables` must not be empty.
struct CountedTable {
  CostTable table;
  int count = 1;
};
CostTable mean_of(std::span<const CountedTable> tables);

// Throws InputError with origin, line, entry and what was expected.
CostTable parse_cost_table(std::string_view text, std::string_view origin, const TableExtent& extent);

}  // namespace penstock::sim
