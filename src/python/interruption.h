// SPDX-License-Identifier: Apache-2.0
// Long calls from Python: other threads of the interpreter run meanwhile, and Ctrl-C ends the call.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

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

// Returns call(), which takes the interpreter's lock or runs Python. Where the interpreter ends meanwhile,
// CPython before 3.14 ends a thread that it does not wait for (a daemon) by pthread_exit, whose unwinding
// aborts the process at the first noexcept: such a thread stays here until the process has ended.
template <class Call>
auto call_python(Call&& call) try {
  return call();
} catch (const abi::__forced_unwind&) {
  while (true) pause();
}

// Without the interpreter's lock.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    call_python([&] { PyEval_RestoreThread(state_); });
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

// Returns work(), which must not touch Python objects.
template <class Work>
auto released(Work&& work) {
  const Interruptible interruptible;
  const Released release;
  return work();
}

}  // namespace penstock::python
