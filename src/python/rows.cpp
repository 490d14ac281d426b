// SPDX-License-Identifier: Apache-2.0
#include "python/rows.h"

#include "base/error.h"
#include "base/text.h"
#include "python/interruption.h"
#include "python/shown.h"
#include "schedule/text.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using schedule::Action;
using schedule::Kind;

constexpr const char* kExpected =
    "expected text as in \"3F2\" or \"0B1.7\", a tuple (kind, stage, micro-batch[, slice]), or None";

[[noreturn]] void refuse_kind(const std::string& given) {
  throw InputError("kind " + given + " is unknown; expected F, B, I or W");
}

// Checks that the number, which Python calls `what`, is at least 0 and below `most`.
int checked(std::int64_t value, const char* what, int most) {
  if (value >= 0 && value < most) return static_cast<int>(value);
  throw InputError(std::string(what) + " " + std::to_string(value) + " must be from 0 to " +
                   std::to_string(most - 1));
}

// Floats are refused: 1.5 is not a stage. NumPy's integers have __index__; so have its arrays, which then
// raise TypeError. Other exceptions of an __index__ propagate.
int number_in(nb::handle value, const char* what, int most) {
  if (PyBool_Check(value.ptr()))
    throw InputError(std::string(what) + " " + shown(value) + " is not an integer");
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    throw InputError(std::string(what) + " " + shown(value) + " is not an integer");
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) throw InputError(std::string(what) + " " + shown(value) + " is too large");
  return checked(number, what, most);
}

Action action_of_tuple(PyObject* tuple) {
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  if (size != 3 && size != 4) throw InputError(shown(tuple) + " is not an action; " + kExpected);
  PyObject* word = PyTuple_GET_ITEM(tuple, 0);
  Py_ssize_t letters = 0;
  const char* letter = PyUnicode_Check(word) ? PyUnicode_AsUTF8AndSize(word, &letters) : nullptr;
  if (letter == nullptr) PyErr_Clear();  // text that is not UTF-8
  const Kind kind = letters == 1 ? schedule::kind_of(*letter) : Kind::Idle;
  if (kind == Kind::Idle) refuse_kind(shown(word));
  const int slice = size == 4 ? number_in(PyTuple_GET_ITEM(tuple, 3), "slice", schedule::kMostSlices) : 0;
  return {schedule::make_key(
              number_in(PyTuple_GET_ITEM(tuple, 1), "stage", schedule::kMostStages),
              number_in(PyTuple_GET_ITEM(tuple, 2), "micro-batch", schedule::kMostMicroBatches), slice),
          kind, false};
}

// Text may contain an overlapped pair: two actions.
void append(nb::handle cell, std::vector<Action>& row) {
  if (PyTuple_Check(cell.ptr())) {
    row.push_back(action_of_tuple(cell.ptr()));
  } else if (cell.is_none()) {
    row.emplace_back();
  } else if (PyUnicode_Check(cell.ptr())) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(cell.ptr(), &length);
    if (text == nullptr) {
      PyErr_Clear();  // not UTF-8
      throw InputError(shown(cell) + " is not an action; " + kExpected);
    }
    schedule::parse_cell({text, static_cast<std::size_t>(length)}, row);
  } else {
    throw InputError(shown(cell) + " is not an action; " + kExpected);
  }
}

std::vector<Action> row_of(nb::handle cells, std::size_t device) {
  if (!PySequence_Check(cells.ptr()) || PyUnicode_Check(cells.ptr()))
    throw InputError("device " + std::to_string(device) + ": " + shown(cells) +
                     " is not a list of actions; expected one for each device");
  const nb::object copy =
      nb::steal(PySequence_Tuple(cells.ptr()));  // an __index__ may change the caller's list
  if (!copy.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PyTuple_GET_SIZE(copy.ptr());
  std::vector<Action> row;
  row.reserve(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    try {
      append(PyTuple_GET_ITEM(copy.ptr(), i), row);
    } catch (const InputError& error) {
      throw InputError("device " + std::to_string(device) + ", position " + std::to_string(i) + ": " +
                       error.what());
    }
  }
  return row;
}

void require_devices(std::size_t devices) {
  if (devices > schedule::kMostDevices)
    throw InputError(std::to_string(devices) + " devices; at most " + std::to_string(schedule::kMostDevices) +
                     " are possible");
}

schedule::Schedule finished(schedule::Schedule schedule) {
  schedule::infer_sizes(schedule);
  if (schedule.stages == 0)
    throw InputError(
        "rows: no action; expected a list of actions for each device, as in "
        "[[\"0F0\", \"0B0\"]]");
  return schedule;
}

void require_length(const char* column, std::size_t found, std::size_t wanted) {
  if (found != wanted)
    throw InputError(std::string(column) + " has " + std::to_string(found) + " rows, device " +
                     std::to_string(wanted) + "; give columns of one length");
}

}  // namespace

schedule::Schedule schedule_of_rows(const std::string& name, nb::sequence rows) {
  const Interruptible interruptible;
  schedule::Schedule schedule{.name = name};
  const std::size_t devices = nb::len(rows);
  require_devices(devices);
  for (std::size_t device = 0; device < devices; ++device) {
    schedule.devices.push_back(row_of(rows[device], device));
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return finished(std::move(schedule));
}

schedule::Schedule schedule_of_columns(const std::string& name, Column<std::int64_t> device,
                                       Column<std::uint8_t> kind, Column<std::int64_t> stage,
                                       Column<std::int64_t> micro_batch, Column<std::int64_t> slice) {
  const std::size_t count = device.shape(0);
  require_length("kind", kind.shape(0), count);
  require_length("stage", stage.shape(0), count);
  require_length("micro_batch", micro_batch.shape(0), count);
  require_length("slice", slice.shape(0), count);
  schedule::Schedule schedule{.name = name};
  for (std::size_t i = 0; i < count; ++i) {
    try {
      const Kind known = schedule::kind_of(static_cast<char>(kind(i)));
      if (known == Kind::Idle) refuse_kind(json_quote(printable(std::string(1, static_cast<char>(kind(i))))));
      const auto d = static_cast<std::size_t>(checked(device(i), "device", schedule::kMostDevices));
      if (d >= schedule.devices.size()) schedule.devices.resize(d + 1);
      schedule.devices[d].push_back(
          {schedule::make_key(checked(stage(i), "stage", schedule::kMostStages),
                              checked(micro_batch(i), "micro-batch", schedule::kMostMicroBatches),
                              checked(slice(i), "slice", schedule::kMostSlices)),
           known, false});
    } catch (const InputError& error) {
      throw InputError("row " + std::to_string(i) + ": " + error.what());
    }
  }
  return finished(std::move(schedule));
}

}  // namespace penstock::python
