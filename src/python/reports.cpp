// SPDX-License-Identifier: Apache-2.0
// Reports: simulations, tables and a plan's front on one HTML page.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/bindings.h"
#include "python/interruption.h"
#include "python/values.h"
#include "report/html.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using report::Report;

std::vector<report::IdleCause> causes_of(const sim::Result& result) {
  const std::pair<const char*, Seconds sim::IdleCauses::*> causes[] = {
      {"ramp", &sim::IdleCauses::ramp},
      {"transfer wait", &sim::IdleCauses::transfer},
      {"copy wait", &sim::IdleCauses::copy},
      {"imbalance", &sim::IdleCauses::imbalance},
      {"dependency", &sim::IdleCauses::dependency}};
  std::vector<report::IdleCause> idle;
  for (const auto& [name, seconds] : causes) {
    idle.push_back({.cause = name});
    for (const sim::DeviceResult& device : result.devices)
      idle.back().devices.push_back(device.time.idle.*seconds);
  }
  return idle;
}

report::MemorySeries series_of(const sim::MemoryUse& memory) {
  report::MemorySeries series;
  for (int c = 0; c < sim::kHeldKinds; ++c) {
    series.categories.emplace_back(sim::name_of(static_cast<sim::Held>(c)));
    auto& bytes = series.bytes.emplace_back();
    for (const sim::MemorySample& sample : memory.samples) bytes.push_back(sample.bytes[c]);
  }
  for (const sim::MemorySample& sample : memory.samples) series.times.push_back(sample.time);
  return series;
}

// Memory over time; empty unless every device has samples.
std::vector<report::MemorySeries> memory_of(const sim::Result& result) {
  std::vector<report::MemorySeries> memory;
  for (const sim::DeviceResult& device : result.devices) {
    if (device.memory.samples.empty()) return {};
    memory.push_back(series_of(device.memory));
  }
  return memory;
}

void add_simulation(Report& report, const Simulated& simulated, const std::string& name,
                    const std::vector<std::string>& notes) {
  report::Run run{.name = name, .program = *simulated.program, .notes = notes};
  run.predicted = report::Track{.label = "simulated",
                                .timeline = simulated.result.timeline,
                                .memory = memory_of(simulated.result),
                                .idle = causes_of(simulated.result)};
  report.runs.push_back(std::move(run));
}

void add_points(Report& report, const std::string& title, const std::vector<std::string>& names,
                const std::vector<double>& bytes, const std::vector<double>& seconds) {
  report::PointChart chart{.title = title,
                           .x_name = "memory of the fullest device",
                           .y_name = "seconds of a step",
                           .x_unit = report::Unit::Bytes,
                           .y_unit = report::Unit::Seconds};
  for (std::size_t i = 0; i < names.size(); ++i) chart.points.push_back({names[i], bytes[i], seconds[i]});
  report.points.push_back(std::move(chart));
}

}  // namespace

void add_reports(nb::module_& module) {
  nb::class_<Report>(module, "Report")
      .def("__init__", [](Report* self, const std::string& title) { new (self) Report{.title = title}; })
      .def("add_simulation", &add_simulation)
      .def("add_points", &add_points)
      .def("add_table",
           [](Report& self, const std::string& title, const std::vector<std::string>& header,
              const std::vector<std::vector<std::string>>& rows) {
             self.runs.back().tables.push_back({title, header, rows});
           })
      .def("add_bars",
           [](Report& self, const std::string& title, bool seconds, const std::vector<std::string>& rows,
              const std::vector<std::string>& parts, const std::vector<std::vector<double>>& values) {
             report::BarChart chart{.title = title, .rows = rows};
             chart.unit = seconds ? report::Unit::Seconds : report::Unit::Bytes;
             for (std::size_t i = 0; i < parts.size(); ++i) chart.parts.push_back({parts[i], values[i]});
             self.bars.push_back(std::move(chart));
           })
      // Of a copy: other threads, and handlers of signals, may add parts meanwhile.
      .def("html", [](Report self) { return released([&] { return report::html_page(self); }); });
}

}  // namespace penstock::python
