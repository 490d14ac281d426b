// SPDX-License-Identifier: Apache-2.0
// Schedules: made by name, read, written in Python, checked, drawn.
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>

#include "base/error.h"
#include "python/bindings.h"
#include "python/interruption.h"
#include "python/rows.h"
#include "python/views.h"
#include "report/drawing.h"
#include "report/grid.h"
#include "report/svg.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/generators/greedy.h"
#include "schedule/text.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using schedule::Action;
using schedule::Finding;
using schedule::Schedule;
using schedule::StageCosts;

schedule::Request request_of(const std::string& name, int devices, std::vector<int> slices, int chunks,
                             int group, double transfer_in_forwards, const StageCosts& costs) {
  schedule::Request request{.devices = devices, .slices = std::move(slices), .chunks = chunks};
  if (chunks == 0) request.chunks = schedule::find_generator(name).default_chunks;
  request.group = group;
  request.transfer_in_forwards = transfer_in_forwards;
  request.costs = costs;
  return request;
}

nb::list catalogue() {
  nb::list list;
  for (const schedule::Generator& generator : schedule::generators()) {
    nb::dict entry;
    entry["name"] = std::string(generator.name);
    entry["summary"] = std::string(generator.summary);
    entry["slices"] = generator.sliced_sibling.empty();
    entry["default_chunks"] = generator.default_chunks;
    entry["any_chunks"] = generator.any_chunks;
    entry["made_for_costs"] = generator.made_for_costs;
    list.append(entry);
  }
  return list;
}

nb::list findings_of(const Schedule& schedule, std::size_t limit) {
  if (limit == 0) throw InputError("limit 0: expected 1 or more findings");
  const bool with_slice = schedule::is_sliced(schedule);
  nb::list list;
  for (const Finding& finding : released([&] { return schedule::check(schedule, limit); })) {
    list.append(nb::make_tuple(std::string(schedule::name_of(finding.rule)), finding.device, finding.position,
                               schedule::to_token(finding.action, with_slice), finding.text));
  }
  return list;
}

nb::list rows_of(const Schedule& schedule) {
  const bool with_slice = schedule::is_sliced(schedule);
  nb::list rows;
  for (const auto& row : schedule.devices) {
    nb::list tokens;
    for (const Action& action : row) tokens.append(schedule::to_token(action, with_slice));
    rows.append(tokens);
  }
  return rows;
}

nb::dict actions_of(nb::handle self, int device) {
  const auto& rows = nb::cast<const Schedule&>(self).devices;
  const auto& row = rows.at(device);
  nb::dict columns;
  columns["kind"] = view<std::uint8_t>(row, offsetof(Action, kind), self);
  columns["stage"] = view<std::int32_t>(row, offsetof(Action, key) + offsetof(schedule::Key, stage), self);
  columns["micro_batch"] =
      view<std::int32_t>(row, offsetof(Action, key) + offsetof(schedule::Key, micro_batch), self);
  columns["slice"] = view<std::int16_t>(row, offsetof(Action, key) + offsetof(schedule::Key, slice), self);
  return columns;
}

void add_generators(nb::module_& module) {
  nb::class_<StageCosts>(module, "StageCosts")
      .def(nb::init<>())
      .def_rw("forward", &StageCosts::forward)
      .def_rw("input", &StageCosts::input)
      .def_rw("weight", &StageCosts::weight)
      .def_rw("transfer", &StageCosts::transfer)
      .def_rw("record", &StageCosts::record)
      .def_rw("limit", &StageCosts::limit);
  module.def("catalogue", &catalogue);
  module.def("generate", [](const std::string& name, int p, std::vector<int> slices, int v, int group,
                            double transfer_in_forwards, const StageCosts& costs) {
    const schedule::Request request =
        request_of(name, p, std::move(slices), v, group, transfer_in_forwards, costs);
    return released([&] { return schedule::generate(name, request); });
  });
  module.def("parse_csv", [](const std::string& text, const std::string& origin) {
    return released([&] { return schedule::parse_csv(text, origin); });
  });
  module.def("require_legal",
             [](const Schedule& schedule) { released([&] { schedule::require_legal(schedule); }); });
  module.def("schedule_of_rows", &schedule_of_rows);
  module.def("schedule_of_columns", &schedule_of_columns);
}

std::string marked_grid(const Schedule& schedule, int columns) {
  const auto findings = schedule::check(schedule);
  return findings.empty() ? report::grid(schedule, {.most_columns = columns})
                          : report::marked_grid(schedule, findings, {.most_columns = columns});
}

}  // namespace

void add_schedules(nb::module_& module) {
  add_generators(module);
  nb::class_<Schedule>(module, "Schedule")
      .def_rw("name", &Schedule::name)
      .def_ro("stages", &Schedule::stages)
      .def_ro("slices", &Schedule::slices)
      .def_prop_ro("devices", &Schedule::device_count)
      .def_prop_ro("size",
                   [](const Schedule& self) {
                     std::size_t actions = 0;
                     for (const auto& device : self.devices) actions += device.size();
                     return actions;
                   })
      .def_prop_ro("is_sliced", [](const Schedule& self) { return schedule::is_sliced(self); })
      .def("__eq__",
           [](const Schedule& a, const Schedule& b) {
             return a.stages == b.stages && a.slices == b.slices && a.devices == b.devices;
           })
      .def("rows", &rows_of)
      .def("check", &findings_of)
      .def("to_csv", [](const Schedule& self) { return released([&] { return schedule::to_csv(self); }); })
      .def("to_json", [](const Schedule& self) { return released([&] { return schedule::to_json(self); }); })
      .def("grid", [](const Schedule& self,
                      int columns) { return released([&] { return marked_grid(self, columns); }); })
      .def("svg",
           [](const Schedule& self) { return released([&] { return report::svg(report::draw(self)); }); });
  module.def("actions", &actions_of);
}

}  // namespace penstock::python
