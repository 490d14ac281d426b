// SPDX-License-Identifier: Apache-2.0
// Long calls from Python: other threads of the interpreter run meanwhile, and Ctrl-C ends the call.
#pragma once

#include <nanobind/nanobind.h>

#include "base/interruption.h"

namespace penstock::python {

// Checks the interpreter for signals, at most every 20 ms; throws what their handlers raised.
void ask_interpreter();

class Interruptible {
 public:
  Interruptible() : before_(interruption_question) { interruption_question = ask_interpreter; }
  ~Interruptible() { interruption_question = before_; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  InterruptionQuestion before_;
};

// Returns work(), which must not touch Python objects.
template <class Work>
auto released(Work&& work) {
  const Interruptible interruptible;
  const nanobind::gil_scoped_release release;
  return work();
}

}  // namespace penstock::python
