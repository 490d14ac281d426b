// SPDX-License-Identifier: Apache-2.0
#include "python/interruption.h"

#include "base/clock.h"

namespace penstock::python {
namespace {

class Acquired {
 public:
  Acquired() : state_(call_python([] { return PyGILState_Ensure(); })) {}
  ~Acquired() { PyGILState_Release(state_); }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace

void ask_interpreter() {
  constexpr int kCallsBetweenLooks = 16;  // at the clock, since reading it costs more than a call
  constexpr Seconds kBetweenQuestions = 0.02;
  static thread_local int calls = 0;
  static thread_local Seconds last = 0;
  if (++calls % kCallsBetweenLooks != 0) return;
  const Seconds now = steady_seconds();
  if (now - last < kBetweenQuestions) return;
  last = now;
  const Acquired acquired;
  if (call_python([] { return PyErr_CheckSignals(); }) != 0) throw nanobind::python_error();
}

}  // namespace penstock::python
