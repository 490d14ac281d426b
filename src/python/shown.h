// SPDX-License-Identifier: Apache-2.0
// Python values in messages.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "base/text.h"

namespace penstock::python {

// Only the type of what Python does not print, such as 10**5000.
inline std::string shown(nanobind::handle value) {
  if (PyObject* text = PyObject_Repr(value.ptr()))
    return printable(nanobind::steal<nanobind::str>(text).c_str());
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nanobind::python_error();
  PyErr_Clear();
  return "<" + std::string(Py_TYPE(value.ptr())->tp_name) + ">";
}

}  // namespace penstock::python
