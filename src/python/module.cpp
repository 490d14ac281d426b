// SPDX-License-Identifier: Apache-2.0
#include "python/bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The pure half of Penstock: schedules, checks, simulation, memory, plans.";
  nanobind::set_leak_warnings(false);  // values that a notebook still shows at its end are not leaks
  penstock::python::add_errors(module);
  penstock::python::add_schedules(module);
  penstock::python::add_programs(module);
  penstock::python::add_costs(module);
  penstock::python::add_results(module);
  penstock::python::add_plans(module);
  penstock::python::add_trainers(module);
  penstock::python::add_reports(module);
}
