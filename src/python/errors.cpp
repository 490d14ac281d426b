// SPDX-License-Identifier: Apache-2.0
// Exceptions: the same kinds and texts as the program's.
#include "base/error.h"

#include "python/bindings.h"

namespace penstock::python {

void add_errors(nanobind::module_& module) {
  nanobind::exception<InputError>(module, "InputError", PyExc_ValueError);
  nanobind::exception<NoAnswer>(module, "NoAnswer", PyExc_RuntimeError);
  nanobind::exception<RunError>(module, "RunError", PyExc_RuntimeError);
}

}  // namespace penstock::python
