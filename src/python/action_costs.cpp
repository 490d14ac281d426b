// SPDX-License-Identifier: Apache-2.0
#include "python/action_costs.h"

#include <string>
#include <string_view>

#include "base/error.h"
#include "python/interruption.h"
#include "python/shown.h"
#include "schedule/program_words.h"
#include "schedule/text.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using schedule::Op;
using schedule::Program;

std::string what(const Op& op) {
  return "costs: " + std::string(schedule::word_of(op.kind).text) + " of stage " +
         std::to_string(op.key.stage) + ", micro-batch " + std::to_string(op.key.micro_batch) + ", slice " +
         std::to_string(op.key.slice);
}

[[noreturn]] void refuse_answer(const Op& op, nb::handle answer) {
  throw InputError(what(op) + ": the function returned " + shown(answer) + "; expected seconds");
}

// NumPy makes floats of spans of time in any unit.
bool is_span_of_numpy(nb::handle value) {
  return std::string_view(Py_TYPE(value.ptr())->tp_name) == "numpy.timedelta64";
}

Seconds seconds_of(nb::callable function, const Op& op) {
  const nb::object answer = nb::steal(call_python([&] {
    return PyObject_CallFunction(function.ptr(), "siii", schedule::word_of(op.kind).text.data(), op.key.stage,
                                 op.key.micro_batch, static_cast<int>(op.key.slice));
  }));
  if (!answer.is_valid()) throw nb::python_error();
  if (PyBool_Check(answer.ptr()) || is_span_of_numpy(answer)) refuse_answer(op, answer);
  const double seconds = PyFloat_AsDouble(answer.ptr());
  if (seconds == -1 && PyErr_Occurred() != nullptr) {
    // TypeError: it is no number. An integer fails only where it is too large.
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && !PyLong_CheckExact(answer.ptr()))
      throw nb::python_error();
    PyErr_Clear();
    refuse_answer(op, answer);
  }
  return sim::checked_seconds(what(op), seconds);
}

}  // namespace

SecondsOfActions seconds_of_actions(nb::callable function, const Program& program) {
  SecondsOfActions seconds;
  for (const schedule::DeviceProgram& device : program.devices) {
    auto& row = seconds.emplace_back(device.ops.size(), 0.0);
    for (std::size_t i = 0; i < device.ops.size(); ++i) {
      if (is_action(device.ops[i].kind)) row[i] = seconds_of(function, device.ops[i]);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return seconds;
}

}  // namespace penstock::python
