// SPDX-License-Identifier: Apache-2.0
// Programs: schedules lowered, and their simulation.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>

#include "base/error.h"
#include "python/bindings.h"
#include "python/interruption.h"
#include "python/values.h"
#include "python/views.h"
#include "schedule/check/check.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/lowering.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using schedule::Op;
using schedule::Program;
using schedule::Schedule;

using SharedProgram = std::shared_ptr<Program>;

// Uses the bytes of the costs if they are a table, which must then have all times of the program.
SharedProgram lower_legal(const Schedule& schedule, const CostsValue* costs, double offload,
                          bool vocabulary_parallel, const std::string& exchange, int exchange_limit) {
  return released([&] {
    schedule::require_legal(schedule);
    const sim::CostTable* table = costs == nullptr ? nullptr : costs->table.get();
    schedule::Lowering lowering =
        table == nullptr ? sim::unit_lowering(offload) : sim::lowering_of(*table, offload);
    lowering.vocabulary.parallel = vocabulary_parallel;
    lowering.exchange = {.mode = schedule::parse_exchange_mode(exchange), .limit = exchange_limit};
    const auto program = std::make_shared<Program>(schedule::lower(schedule, lowering));
    if (table != nullptr) table->require_complete(*program);
    return program;
  });
}

void check_exchange(const std::string& word) {
  on_behalf_of("exchange", [&] { return schedule::parse_exchange_mode(word); });
}

Simulated simulate(const SharedProgram& program, const CostsValue& costs,
                   const std::vector<std::string>& changes, bool samples) {
  return released([&] {
    Simulated simulated{program,
                        sim::evaluate_changed(*program, *costs.costs, changes, {.memory_samples = samples})};
    sim::require_end(simulated.result);
    return simulated;
  });
}

}  // namespace

void add_programs(nb::module_& module) {
  nb::class_<Program>(module, "Program")
      .def_ro("name", &Program::name)
      .def_ro("stages", &Program::stages)
      .def_ro("slices", &Program::slices)
      .def_prop_ro("devices", &Program::device_count)
      .def("to_text", [](const Program& self) { return released([&] { return schedule::to_text(self); }); });
  module.def("lower", &lower_legal, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  module.def("check_exchange", &check_exchange);
  module.def("simulate", &simulate);
}

}  // namespace penstock::python
