// SPDX-License-Identifier: Apache-2.0
#include "cli/simulated_track.h"

#include "base/text.h"
#include "base/units.h"

namespace penstock::cli {
namespace {

report::MemorySeries memory_series(const sim::DeviceMemory& memory) {
  report::MemorySeries series;
  for (int i = 0; i < sim::kCategories; ++i) {
    series.categories.emplace_back(sim::name_of(static_cast<sim::Category>(i)));
    series.bytes.emplace_back();
  }
  for (const sim::MemorySample& sample : memory.samples) {
    series.times.push_back(sample.time);
    for (std::size_t i = 0; i < sample.bytes.size(); ++i) series.bytes[i].push_back(sample.bytes[i]);
  }
  return series;
}

struct NamedCause {
  const char* name;
  Seconds sim::IdleCauses::*seconds;
};
constexpr NamedCause kCauses[] = {{"ramp", &sim::IdleCauses::ramp},
                                  {"transfer wait", &sim::IdleCauses::transfer},
                                  {"copy wait", &sim::IdleCauses::copy},
                                  {"imbalance", &sim::IdleCauses::imbalance},
                                  {"dependency", &sim::IdleCauses::dependency}};

std::string percent(double share) { return number(100.0 * share, 1) + " %"; }

}  // namespace

report::Track track_of(std::string label, const sim::Result& result) {
  report::Track track{.label = std::move(label), .timeline = result.timeline};
  for (const NamedCause& cause : kCauses) {
    track.idle.push_back({.cause = cause.name});
    for (const sim::DeviceResult& device : result.devices) {
      track.idle.back().devices.push_back(device.time.idle.*cause.seconds);
    }
  }
  for (const sim::DeviceResult& device : result.devices) {
    if (!device.memory.samples.empty()) track.memory.push_back(memory_series(device.memory));
  }
  if (track.memory.size() != result.devices.size()) track.memory.clear();
  return track;
}

report::Table device_table(std::string title, const sim::Result& result) {
  report::Table table{.title = std::move(title),
                      .header = {"device", "busy", "idle", "in flight", "until input", "peak saved"}};
  for (std::size_t device = 0; device < result.devices.size(); ++device) {
    const sim::DeviceResult& row = result.devices[device];
    const double busy = result.makespan > 0 ? row.time.busy / result.makespan : 0.0;
    table.rows.push_back({std::to_string(device), print_seconds(row.time.busy), percent(1.0 - busy),
                          std::to_string(row.in_flight.peak), std::to_string(row.in_flight.peak_until_input),
                          print_bytes(row.memory.peak)});
  }
  return table;
}

}  // namespace penstock::cli
