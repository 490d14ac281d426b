// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module penstock._core. It has only plain functions and values; the Python files
// of penstock/ add names, defaults and units.
#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

void add_errors(nanobind::module_& module);
void add_schedules(nanobind::module_& module);
void add_programs(nanobind::module_& module);
void add_costs(nanobind::module_& module);
void add_results(nanobind::module_& module);
void add_plans(nanobind::module_& module);
void add_trainers(nanobind::module_& module);
void add_reports(nanobind::module_& module);

}  // namespace penstock::python
