// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/table.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "schedule/program_words.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;

constexpr Seconds kMissing = -1;

// Kinds that need no entry and default to 0: the passes, not the schedule, add them.
bool is_optional(OpKind kind) { return !is_action(kind); }

// The time of a whole micro-batch: the sum over its slices, missing if a slice's time is. An op of a stage or
// a device, such as STEP, has no slice; its time is stored at the first.
std::optional<Seconds> whole_seconds(const CostTable& table, const schedule::OpWord& word, int stage) {
  const int slices = word.key == schedule::KeyForm::Full ? table.extent().slices : 1;
  Seconds sum = 0;
  for (int slice = 0; slice < slices; ++slice) {
    const std::optional<Seconds> seconds = table.find_seconds(word.kind, stage, slice);
    if (!seconds) return {};
    sum += *seconds;
  }
  return sum;
}

int most(const std::vector<int>& slices) { return slices.empty() ? 1 : *std::ranges::max_element(slices); }

}  // namespace

TableExtent extent_of(const schedule::Program& program) {
  return {program.stages, most(program.slices), program.device_count()};
}

TableExtent extent_of(const schedule::Schedule& schedule) {
  return {schedule.stages, most(schedule.slices), schedule.device_count()};
}

CostTable::CostTable(const TableExtent& extent) : extent_(extent) {
  require(extent.devices <= kMostTableDevices, "a table of costs is for at most " +
                                                   std::to_string(kMostTableDevices) +
                                                   " devices; there are " + std::to_string(extent.devices));
  const std::size_t cells = static_cast<std::size_t>(extent.stages) * extent.slices;
  for (const schedule::OpWord& word : schedule::kOpWords) {
    seconds_.emplace_back(cells, is_optional(word.kind) ? 0.0 : kMissing);
  }
  records_.resize(cells);
  messages_.resize(extent.slices);
  links_.resize(static_cast<std::size_t>(extent.devices) * extent.devices);
}

void CostTable::set_seconds(OpKind kind, int stage, int slice, Seconds seconds) {
  seconds_[static_cast<std::size_t>(kind)][cell(stage, slice)] = seconds;
}

void CostTable::set_link(int from, int to, const Link& link) {
  links_[static_cast<std::size_t>(from) * extent_.devices + to] = link;
}

void CostTable::set_message(int slice, Bytes bytes) { messages_[slice] = bytes; }

void CostTable::set_record(int stage, int slice, const RecordBytes& bytes) {
  records_[cell(stage, slice)] = bytes;
}

void CostTable::leave_out_kinds_not_in(const schedule::Program& run) {
  std::vector<bool> found(seconds_.size());
  for (const schedule::DeviceProgram& device : run.devices) {
    for (const Op& op : device.ops) found[static_cast<std::size_t>(op.kind)] = true;
  }
  for (const schedule::OpWord& word : schedule::kOpWords) {
    const std::size_t kind = static_cast<std::size_t>(word.kind);
    if (found[kind] || is_send(word.kind) || is_receive(word.kind)) continue;
    std::ranges::fill(seconds_[kind], kMissing);
  }
  measured_ = true;
}

void CostTable::require_complete(const schedule::Program& program) const {
  for (const schedule::DeviceProgram& device : program.devices) {
    for (const Op& op : device.ops) {
      if (seconds_[static_cast<std::size_t>(op.kind)][cell(op.key.stage, op.key.slice)] != kMissing) continue;
      const std::string word(word_of(op.kind).text);
      const std::string stage = std::to_string(op.key.stage), slice = std::to_string(op.key.slice);
      throw InputError("no time for " + word + " of stage " + stage + ", slice " + slice +
                       (measured_ ? ": the run lacks it; give one that has it, or a table of costs"
                                  : "; add a line \"" + word + " " + stage + " " + slice + " SECONDS\""));
    }
  }
}

std::optional<Seconds> CostTable::find_seconds(OpKind kind, int stage, int slice) const {
  const Seconds seconds = seconds_[static_cast<std::size_t>(kind)][cell(stage, slice)];
  return seconds == kMissing ? std::nullopt : std::optional(seconds);
}

const Link& CostTable::link(int from, int to) const {
  return links_[static_cast<std::size_t>(from) * extent_.devices + to];
}

Seconds CostTable::seconds(int, std::uint32_t, const Op& op) const {
  return seconds_[static_cast<std::size_t>(op.kind)][cell(op.key.stage, op.key.slice)];
}

Transfer CostTable::transfer(int device, std::uint32_t, const Op& send) const {
  const Link& way = link(device, send.peer);
  return {static_cast<double>(send.bytes) / way.bytes_per_second, way.latency};
}

RecordBytes CostTable::record(const schedule::Key& key) const { return records_[cell(key.stage, key.slice)]; }

CostTable without_slices(const CostTable& table) {
  const auto [stages, slices, devices] = table.extent();
  CostTable whole({stages, 1, devices});
  for (int stage = 0; stage < stages; ++stage) {
    for (const schedule::OpWord& word : schedule::kOpWords) {
      if (const auto seconds = whole_seconds(table, word, stage))
        whole.set_seconds(word.kind, stage, 0, *seconds);
    }
  }
  Bytes message = 0;
  for (int slice = 0; slice < slices; ++slice) message += table.message(slice);
  whole.set_message(0, message);
  const int messages = message > 0 ? 1 : slices;
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      Link way = table.link(from, to);
      way.latency *= messages;
      whole.set_link(from, to, way);
    }
  }
  return whole;
}

CostTable mean_of(std::span<const CountedTable> tables) {
  const auto [stages, slices, devices] = tables.front().table.extent();
  CostTable mean({stages, slices, devices});
  const auto over_tables = [&](auto value) -> std::optional<Seconds> {
    Seconds sum = 0;
    int count = 0;
    for (const CountedTable& counted : tables) {
      const std::optional<Seconds> seconds = value(counted.table);
      if (!seconds) continue;
      sum += counted.count * *seconds;
      count += counted.count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  };
  for (int stage = 0; stage < stages; ++stage) {
    for (int slice = 0; slice < slices; ++slice) {
      for (const schedule::OpWord& word : schedule::kOpWords) {
        const auto seconds =
            over_tables([&](const CostTable& table) { return table.find_seconds(word.kind, stage, slice); });
        if (seconds) mean.set_seconds(word.kind, stage, slice, *seconds);
      }
    }
  }
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      const auto latency =
          over_tables([&](const CostTable& table) { return std::optional(table.link(from, to).latency); });
      mean.set_link(from, to, {.latency = *latency});
    }
  }
  return mean;
}

}  // namespace penstock::sim
