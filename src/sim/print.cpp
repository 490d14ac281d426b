// SPDX-License-Identifier: Apache-2.0
#include "sim/print.h"

#include "base/columns.h"
#include "base/text.h"

namespace penstock::sim {
namespace {

std::string field(std::string_view key, const std::string& value) { return json_quote(key) + ":" + value; }
std::string field(std::string_view key, Seconds value) { return field(key, exact_number(value)); }

std::string object(const std::vector<std::string>& fields) { return "{" + join(fields, ",") + "}"; }
std::string list(const std::vector<std::string>& items) { return "[" + join(items, ",") + "]"; }

std::string json_of(const IdleCauses& idle) {
  return object({field("ramp", idle.ramp), field("transfer", idle.transfer), field("copy", idle.copy),
                 field("imbalance", idle.imbalance), field("dependency", idle.dependency)});
}

std::string json_of(const HeldBytes& bytes) {
  std::vector<std::string> fields;
  for (int c = 0; c < kHeldKinds; ++c) {
    fields.push_back(field(name_of(static_cast<Held>(c)), std::to_string(bytes[c])));
  }
  return object(fields);
}

std::string json_of(const std::vector<MemorySample>& samples) {
  std::vector<std::string> rows;
  for (const MemorySample& sample : samples) {
    std::vector<std::string> row{exact_number(sample.time)};
    for (const Bytes bytes : sample.bytes) row.push_back(std::to_string(bytes));
    rows.push_back(list(row));
  }
  return list(rows);
}

std::string json_of(const DeviceResult& device) {
  std::vector<std::string> fields{
      field("busy_s", device.time.busy),
      field("idle_s", device.time.idle.total()),
      field("idle_by_cause_s", json_of(device.time.idle)),
      field("peak_in_flight", std::to_string(device.in_flight.peak)),
      field("peak_in_flight_until_input", std::to_string(device.in_flight.peak_until_input)),
      field("peak_bytes", std::to_string(device.memory.peak)),
      field("peak_bytes_by_category", json_of(device.memory.peaks))};
  if (device.memory.away_peak > 0)
    fields.push_back(field("peak_away_bytes", std::to_string(device.memory.away_peak)));
  if (!device.memory.samples.empty()) fields.push_back(field("memory", json_of(device.memory.samples)));
  return object(fields);
}

std::string json_of(const Deadlock& deadlock, const std::string& name) {
  std::vector<std::string> stalls;
  for (const Stall& stall : deadlock.stalls) {
    stalls.push_back(
        object({field("device", std::to_string(stall.device)), field("op", std::to_string(stall.op)),
                field("waits_for", std::to_string(stall.waits_for))}));
  }
  return object({field("schedule", json_quote(name)), field("deadlock", json_quote(deadlock.text)),
                 field("stalls", list(stalls))}) +
         "\n";
}

std::string head_of(const Result& result) {
  return printable_lines(result.name) + ": " + print_seconds(result.makespan) + ", bubble " +
         percent(result.bubble_fraction) + " of the step, " + percent(result.span_bubble_fraction) +
         " of the devices' spans\n";
}

// Prints rounding errors of sums, such as a wait of 1e-13 s, as 0.
std::string settled(Seconds seconds, Seconds makespan) {
  constexpr double kRounding = 1e-9;
  return print_seconds(seconds < kRounding * makespan ? 0 : seconds);
}

std::vector<std::string> cells_of(const DeviceResult& device, Seconds makespan) {
  const IdleCauses& idle = device.time.idle;
  std::vector<std::string> cells;
  for (const Seconds seconds : {device.time.busy, idle.total(), idle.ramp, idle.transfer, idle.copy,
                                idle.imbalance, idle.dependency}) {
    cells.push_back(settled(seconds, makespan));
  }
  cells.push_back(std::to_string(device.in_flight.peak));
  cells.push_back(print_bytes(device.memory.peak));
  return cells;
}

const std::vector<std::string> kColumns{"device", "busy",      "idle",       "ramp",      "transfer",
                                        "copy",   "imbalance", "dependency", "in flight", "peak saved"};

}  // namespace

std::string to_json(const Result& result) {
  if (result.deadlock) return json_of(*result.deadlock, result.name);
  std::vector<std::string> devices;
  for (const DeviceResult& device : result.devices) devices.push_back(json_of(device));
  return object({field("schedule", json_quote(result.name)), field("makespan_s", result.makespan),
                 field("bubble_fraction", result.bubble_fraction),
                 field("span_bubble_fraction", result.span_bubble_fraction),
                 field("devices", list(devices))}) +
         "\n";
}

std::string to_table(const Result& result) {
  if (result.deadlock) return printable_lines(result.name) + ": " + result.deadlock->text + "\n";
  Rows rows{kColumns};
  for (std::size_t d = 0; d < result.devices.size(); ++d) {
    rows.push_back(cells_of(result.devices[d], result.makespan));
    rows.back().insert(rows.back().begin(), std::to_string(d));
  }
  return head_of(result) + columns(rows);
}

std::string to_comparison(const Result& measured, const Result& simulated) {
  Rows rows{kColumns};
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    for (const auto& [name, result] :
         {std::pair{"measured", &measured}, std::pair{"simulated", &simulated}}) {
      rows.push_back(cells_of(result->devices.at(d), result->makespan));
      rows.back().insert(rows.back().begin(), std::to_string(d) + " " + name);
    }
  }
  const double difference = measured.makespan > 0 ? simulated.makespan / measured.makespan - 1 : 0;
  return "measured  " + head_of(measured) + "simulated " + head_of(simulated) +
         "difference of the makespan: " + percent(difference) + "\n" + columns(rows);
}

}  // namespace penstock::sim
