// SPDX-License-Identifier: Apache-2.0
// Results of a simulation: totals, devices, memory over time, the timeline.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstddef>

#include "python/bindings.h"
#include "python/interruption.h"
#include "python/values.h"
#include "python/views.h"
#include "report/drawing.h"
#include "report/svg.h"
#include "report/terminal.h"
#include "report/trace.h"
#include "schedule/program_words.h"
#include "sim/print.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using schedule::Event;
using schedule::Key;
using schedule::Op;

nb::dict bytes_by_category(const sim::HeldBytes& bytes) {
  nb::dict table;
  for (int c = 0; c < sim::kHeldKinds; ++c)
    table[std::string(sim::name_of(static_cast<sim::Held>(c))).c_str()] = bytes[c];
  return table;
}

nb::dict device_of(const sim::DeviceResult& device) {
  const sim::IdleCauses& idle = device.time.idle;
  nb::dict row;
  row["busy_s"] = device.time.busy;
  row["idle_s"] = idle.total();
  row["ramp_s"] = idle.ramp;
  row["transfer_s"] = idle.transfer;
  row["copy_s"] = idle.copy;
  row["imbalance_s"] = idle.imbalance;
  row["dependency_s"] = idle.dependency;
  row["peak_in_flight"] = device.in_flight.peak;
  row["peak_in_flight_until_input"] = device.in_flight.peak_until_input;
  row["peak_bytes"] = device.memory.peak;
  row["peak_bytes_by_category"] = bytes_by_category(device.memory.peaks);
  row["peak_away_bytes"] = device.memory.away_peak;
  return row;
}

nb::list devices_of(const Simulated& self) {
  nb::list rows;
  for (const sim::DeviceResult& device : self.result.devices) rows.append(device_of(device));
  return rows;
}

// One row per op of the device, in order; `self` owns the memory.
nb::dict timeline_of(nb::handle self, int device) {
  const auto& simulated = nb::cast<const Simulated&>(self);
  const auto& events = simulated.result.timeline.devices.at(device);
  const auto& ops = simulated.program->devices.at(device).ops;
  nb::dict columns;
  columns["kind"] = view<std::uint8_t>(ops, offsetof(Op, kind), self);
  columns["stage"] = view<std::int32_t>(ops, offsetof(Op, key) + offsetof(Key, stage), self);
  columns["micro_batch"] = view<std::int32_t>(ops, offsetof(Op, key) + offsetof(Key, micro_batch), self);
  columns["slice"] = view<std::int16_t>(ops, offsetof(Op, key) + offsetof(Key, slice), self);
  columns["peer"] = view<std::int32_t>(ops, offsetof(Op, peer), self);
  columns["bytes"] = view<std::int64_t>(ops, offsetof(Op, bytes), self);
  columns["start"] = view<double>(events, offsetof(Event, start), self);
  columns["end"] = view<double>(events, offsetof(Event, end), self);
  return columns;
}

// Bytes of each category, valid from the time of a row until the next row.
nb::dict memory_of(nb::handle self, int device) {
  const auto& samples = nb::cast<const Simulated&>(self).result.devices.at(device).memory.samples;
  nb::dict columns;
  columns["time"] = view<double>(samples, offsetof(sim::MemorySample, time), self);
  for (int c = 0; c < sim::kHeldKinds; ++c) {
    const std::size_t offset = offsetof(sim::MemorySample, bytes) + c * sizeof(Bytes);
    columns[std::string(sim::name_of(static_cast<sim::Held>(c))).c_str()] =
        view<std::int64_t>(samples, offset, self);
  }
  return columns;
}

nb::list kinds() {
  nb::list words;
  for (const schedule::OpWord& word : schedule::kOpWords) words.append(std::string(word.text));
  return words;
}

}  // namespace

void add_results(nb::module_& module) {
  module.def("kinds", &kinds);
  module.def("timeline", &timeline_of);
  module.def("memory", &memory_of);
  nb::class_<Simulated>(module, "Simulated")
      .def_prop_ro("name", [](const Simulated& self) { return self.result.name; })
      .def_prop_ro("makespan", [](const Simulated& self) { return self.result.makespan; })
      .def_prop_ro("bubble_fraction", [](const Simulated& self) { return self.result.bubble_fraction; })
      .def_prop_ro("span_bubble_fraction",
                   [](const Simulated& self) { return self.result.span_bubble_fraction; })
      .def_prop_ro("size",
                   [](const Simulated& self) {
                     std::size_t ops = 0;
                     for (const auto& device : self.program->devices) ops += device.ops.size();
                     return ops;
                   })
      .def("devices", &devices_of)
      .def("to_json", [](const Simulated& self) { return sim::to_json(self.result); })
      .def("to_table", [](const Simulated& self) { return sim::to_table(self.result); })
      .def("svg",
           [](const Simulated& self) {
             return released([&] { return report::svg(report::draw(*self.program, self.result.timeline)); });
           })
      .def("terminal",
           [](const Simulated& self, int width) {
             return report::terminal_timeline(*self.program, self.result.timeline, {.width = width});
           })
      .def("trace", [](const Simulated& self) {
        return released([&] {
          return report::chrome_trace(
              {.prefix = "", .program = *self.program, .timeline = self.result.timeline});
        });
      });
}

}  // namespace penstock::python
