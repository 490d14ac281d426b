// SPDX-License-Identifier: Apache-2.0
#include "report/html_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "report/html_columns.h"
#include "report/html_json.h"
#include "schedule/program_words.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Op;
using schedule::OpKind;

using schedule::kLanes;

std::map<Bytes, std::size_t> distinct_sizes(const schedule::Program& program) {
  std::map<Bytes, std::size_t> sizes;
  for (const auto& device : program.devices) {
    for (const Op& op : device.ops) sizes.try_emplace(op.bytes, 0);
  }
  std::size_t next = 0;
  for (auto& [size, index] : sizes) index = next++;
  return sizes;
}

template <class Value>
void add_differences(Columns& columns, const std::vector<Op>& ops, Value value) {
  std::vector<std::int64_t> values;
  for (const Op& op : ops) values.push_back(value(op));
  columns.add_differences(values);
}

std::string device_columns(const schedule::DeviceProgram& device, const std::map<Bytes, std::size_t>& sizes) {
  Columns columns;
  const auto& ops = device.ops;
  columns.add(ops.size());
  for (const Op& op : ops) columns.add(static_cast<std::uint64_t>(op.kind));
  add_differences(columns, ops, [](const Op& op) { return op.key.stage; });
  add_differences(columns, ops, [](const Op& op) { return op.key.micro_batch; });
  add_differences(columns, ops, [](const Op& op) { return op.key.slice; });
  for (const Op& op : ops) columns.add(static_cast<std::uint64_t>(op.peer + 1));
  for (const Op& op : ops) columns.add(sizes.at(op.bytes));
  for (const Op& op : ops) columns.add(op.after_count);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const std::uint32_t wait : device.after_of(ops[i])) columns.add(i - wait);
  }
  return columns.base64();
}

std::int64_t ticks(Seconds time, Seconds tick) { return std::llround(time / tick); }

Bytes total_at(const MemorySeries& memory, std::size_t entry) {
  Bytes total = 0;
  for (const auto& category : memory.bytes) total += category[entry];
  return total;
}

std::vector<std::size_t> kept_entries(const MemorySeries& memory, std::size_t points) {
  std::vector<std::size_t> kept;
  const std::size_t count = memory.times.size();
  const std::size_t slots = std::max<std::size_t>(points / 2, 1);
  if (count <= std::max<std::size_t>(points, 2)) {
    for (std::size_t i = 0; i < count; ++i) kept.push_back(i);
    return kept;
  }
  const Seconds first = memory.times.front(), span = std::max(memory.times.back() - first, 1e-300);
  const auto slot_of = [&](std::size_t i) {
    return std::min(slots - 1, static_cast<std::size_t>((memory.times[i] - first) / span * slots));
  };
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    std::size_t greatest = begin;
    for (; end < count && slot_of(end) == slot_of(begin); ++end) {
      if (total_at(memory, end) > total_at(memory, greatest)) greatest = end;
    }
    kept.push_back(greatest);
    if (greatest != end - 1) kept.push_back(end - 1);
  }
  return kept;
}

// The smallest power of two in which all values fit into 24 bits; 1 (exact) for small values.
Bytes memory_unit(const MemorySeries& memory) {
  Bytes greatest = 0, unit = 1;
  for (const auto& category : memory.bytes) {
    for (const Bytes value : category) greatest = std::max(greatest, value);
  }
  while (greatest / unit >= Bytes{1} << 24) unit *= 2;
  return unit;
}

// Adds an op's time to the parts of the makespan that it covers, as a fraction of each part.
void add_shares(std::vector<double>& row, const Event& event, Seconds width) {
  const auto last = static_cast<std::int64_t>(row.size()) - 1;
  const auto slot_at = [&](Seconds time) {
    return std::clamp(static_cast<std::int64_t>(time / width), std::int64_t{0}, last);
  };
  for (std::int64_t slot = slot_at(event.start); slot <= slot_at(event.end); ++slot) {
    const Seconds begin = std::max(event.start, slot * width), end = std::min(event.end, (slot + 1) * width);
    if (end > begin) row[slot] += (end - begin) / width;
  }
}

}  // namespace

std::string program_json(const schedule::Program& program) {
  const auto sizes = distinct_sizes(program);
  JsonList bytes, devices;
  for (const auto& [size, index] : sizes) bytes.add(std::to_string(size));
  for (const auto& device : program.devices) devices.add(json_text(device_columns(device, sizes)));
  return JsonObject().add("sizes", bytes.text()).add("devices", devices.text()).text();
}

std::string events_json(const schedule::Program& program, const schedule::Timeline& timeline, Seconds tick) {
  JsonList devices;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    Columns columns;
    std::array<std::int64_t, kLanes> ended{};
    for (std::size_t i = 0; i < timeline.devices[d].size(); ++i) {
      const Event& event = timeline.devices[d][i];
      std::int64_t& before = ended[static_cast<std::size_t>(lane_of(program.devices[d].ops[i].kind))];
      const std::int64_t start = ticks(event.start, tick), end = std::max(start, ticks(event.end, tick));
      columns.add_signed(start - before);
      columns.add(static_cast<std::uint64_t>(end - start));
      before = end;
    }
    devices.add(json_text(columns.base64()));
  }
  return devices.text();
}

std::vector<OpKind> compute_kinds() {
  std::vector<OpKind> kinds;
  for (const auto& word : schedule::kOpWords) {
    if (lane_of(word.kind) == schedule::Lane::Compute) kinds.push_back(word.kind);
  }
  return kinds;
}

std::string shares_json(const schedule::Program& program, const schedule::Timeline& timeline,
                        std::size_t slots) {
  const auto kinds = compute_kinds();
  const Seconds makespan = timeline.makespan(), width = makespan > 0 ? makespan / slots : 1.0;
  JsonList devices;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    std::map<OpKind, std::vector<double>> rows;
    for (const OpKind kind : kinds) rows[kind].assign(slots, 0.0);
    for (std::size_t i = 0; i < timeline.devices[d].size(); ++i) {
      const auto row = rows.find(program.devices[d].ops[i].kind);
      if (row != rows.end()) add_shares(row->second, timeline.devices[d][i], width);
    }
    Columns columns;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      for (const OpKind kind : kinds) {
        columns.add_byte(
            static_cast<std::uint8_t>(std::lround(std::clamp(rows[kind][slot], 0.0, 1.0) * 255)));
      }
    }
    devices.add(json_text(columns.base64()));
  }
  return devices.text();
}

std::string memory_json(const MemorySeries& memory, Seconds tick, std::size_t points) {
  JsonList categories;
  for (const std::string& category : memory.categories) categories.add(json_text(category));
  const auto kept = kept_entries(memory, points);
  const Bytes unit = memory_unit(memory);
  Columns columns;
  columns.add(kept.size());
  std::vector<std::int64_t> values;
  for (const std::size_t entry : kept) values.push_back(ticks(memory.times[entry], tick));
  columns.add_differences(values);
  for (const auto& category : memory.bytes) {
    values.clear();
    for (const std::size_t entry : kept) values.push_back((category[entry] + unit / 2) / unit);
    columns.add_differences(values);
  }
  return JsonObject()
      .add("categories", categories.text())
      .add("unit", std::to_string(unit))
      .add("data", json_text(columns.base64()))
      .text();
}

}  // namespace penstock::report
