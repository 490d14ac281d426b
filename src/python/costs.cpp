// SPDX-License-Identifier: Apache-2.0
// Costs from Python: numbers, tables, functions, measured runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "python/action_costs.h"
#include "python/bindings.h"
#include "python/interruption.h"
#include "python/values.h"
#include "run/record/measured_run.h"
#include "schedule/check/check.h"
#include "schedule/program_words.h"
#include "sim/costs/measured.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using schedule::OpKind;
using schedule::Program;
using schedule::Schedule;

// Makes error messages name Python arguments instead of command-line flags.
template <class Work>
auto naming_arguments(Work&& work) try {
  return work();
} catch (const InputError& error) {
  const std::string text = error.what();
  throw InputError(text.starts_with("--") ? text.substr(2) : text);
}

CostsValue unit_costs(const sim::UnitTimes& times, double offload, const Program& program) {
  return naming_arguments([&] {
    return costs_value(sim::UnitCosts(times, {.record = offload > 0 ? sim::kUnitRecord : 0}, program.slices));
  });
}

OpKind kind_of(const std::string& word) {
  for (const schedule::OpWord& known : schedule::kOpWords) {
    if (known.text == word) return known.kind;
  }
  throw InputError("kind " + json_quote(printable(word)) + " is unknown");
}

// Flattened tables: [stage][slice], and links [from][to].
struct Table {
  std::map<std::string, std::vector<double>> seconds;  // by the kind's word
  std::vector<double> latency, bytes_per_second;
  std::vector<double> record, weight_record, kv_gradient;  // bytes
  std::vector<double> message;                             // bytes, per slice
};

void give_links(sim::CostTable& costs, const Table& table) {
  const int devices = costs.extent().devices;
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      const std::size_t cell = static_cast<std::size_t>(from) * devices + to;
      const std::string way = " from device " + std::to_string(from) + " to " + std::to_string(to);
      const double rate = table.bytes_per_second[cell];
      if (!(rate > 0))
        throw InputError("bandwidth" + way + ": " + number_or_name(rate) +
                         ": expected bytes per second above 0");
      costs.set_link(from, to, {sim::checked_seconds("transfer" + way, table.latency[cell]), rate});
    }
  }
}

Bytes bytes_in(const char* what, double value) {
  constexpr double kMost = 1e15;
  if (value >= 0 && value <= kMost && value == std::floor(value)) return static_cast<Bytes>(value);
  throw InputError(std::string(what) + " " + number_or_name(value) + ": expected whole bytes, 0 to 1e15");
}

CostsValue table_costs(const Table& table, const Schedule& schedule) {
  schedule::require_legal(schedule);  // an illegal one may have any number of stages and slices
  sim::CostTable costs(sim::extent_of(schedule));
  const auto [stages, slices, devices] = costs.extent();
  for (int stage = 0; stage < stages; ++stage) {
    for (int slice = 0; slice < slices; ++slice) {
      const std::size_t cell = static_cast<std::size_t>(stage) * slices + slice;
      for (const auto& [word, seconds] : table.seconds) {
        const std::string what =
            word + " of stage " + std::to_string(stage) + ", slice " + std::to_string(slice);
        costs.set_seconds(kind_of(word), stage, slice, sim::checked_seconds(what, seconds[cell]));
      }
      costs.set_record(stage, slice,
                       {.record = bytes_in("record", table.record[cell]),
                        .weight_record = bytes_in("weight_record", table.weight_record[cell]),
                        .kv_gradient = bytes_in("kv_gradient", table.kv_gradient[cell])});
    }
  }
  for (int slice = 0; slice < slices; ++slice)
    costs.set_message(slice, bytes_in("message", table.message[slice]));
  give_links(costs, table);
  return costs_value(std::move(costs));
}

CostsValue parsed_costs(const std::string& text, const std::string& origin, const Schedule& schedule) {
  schedule::require_legal(schedule);
  return costs_value(sim::parse_cost_table(text, origin, sim::extent_of(schedule)));
}

run::MeasuredRun measured_run(const std::string& program, const std::string& program_file,
                              const std::string& timeline, const std::string& timeline_file) {
  return released([&] {
    return run::parse_measured_run({program, program_file}, {timeline, timeline_file});
  });
}

CostsValue measured_costs(const run::MeasuredRun& run, const std::string& origin, const Schedule& schedule) {
  schedule::require_legal(schedule);
  sim::require_even_slices(schedule, "costs: " + origin);
  return costs_value(
      sim::average(run.program, run.typical_step().timeline, sim::extent_of(schedule), "costs: " + origin));
}

void add_values(nb::module_& module) {
  nb::class_<CostsValue>(module, "Costs");
  nb::class_<sim::UnitTimes>(module, "UnitTimes")
      .def(nb::init<>())
      .def_rw("forward", &sim::UnitTimes::forward)
      .def_rw("backward", &sim::UnitTimes::backward)
      .def_rw("input", &sim::UnitTimes::input)
      .def_rw("weight", &sim::UnitTimes::weight)
      .def_rw("transfer", &sim::UnitTimes::transfer)
      .def_rw("copy", &sim::UnitTimes::copy)
      .def_rw("visit", &sim::UnitTimes::visit)
      .def_rw("attention", &sim::UnitTimes::attention)
      .def_rw("layers", &sim::UnitTimes::layers);
  nb::class_<run::MeasuredRun>(module, "MeasuredRun");
  nb::class_<Table>(module, "Table")
      .def(nb::init<>())
      .def_rw("seconds", &Table::seconds)
      .def_rw("latency", &Table::latency)
      .def_rw("bytes_per_second", &Table::bytes_per_second)
      .def_rw("record", &Table::record)
      .def_rw("message", &Table::message)
      .def_rw("weight_record", &Table::weight_record)
      .def_rw("kv_gradient", &Table::kv_gradient);
}

}  // namespace

void add_costs(nb::module_& module) {
  add_values(module);
  module.def("unit_costs", &unit_costs);
  module.def("table_costs", &table_costs);
  module.def("parsed_costs", &parsed_costs);
  module.def("require_measured", &run::require_measured);
  module.def("measured_run", &measured_run);
  module.def("measured_costs", &measured_costs);
  module.def("function_costs",
             [](nb::callable function, const sim::UnitTimes& others, double offload, const Program& program) {
               return CostsValue{std::make_shared<ActionCosts>(seconds_of_actions(function, program),
                                                               unit_costs(others, offload, program).costs)};
             });
}

}  // namespace penstock::python
