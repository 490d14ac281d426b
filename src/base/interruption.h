// SPDX-License-Identifier: Apache-2.0
// Long computations regularly ask whether their caller still wants the result. The default is yes; a host
// program (such as an interpreter that a user interrupts) sets its own question for its thread.
#pragma once

namespace penstock {

// Throws to end the computation. Called often, so it must be fast.
using InterruptionQuestion = void (*)();
inline thread_local InterruptionQuestion interruption_question = nullptr;

// Every loop that may run for more than about a second must call this, and must release all it holds if the
// question throws.
inline void allow_interruption() {
  if (interruption_question != nullptr) interruption_question();
}

}  // namespace penstock
