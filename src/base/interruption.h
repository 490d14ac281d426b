// SPDX-License-Identifier: Apache-2.0
// Long computations ask from time to time whether their caller still wants them. By default everybody does;
// a host program (an interpreter that a person interrupts) sets a question of its own for its thread.
#pragma once

namespace penstock {

// Throws to end the computation. Called often: answers must be quick.
using InterruptionQuestion = void (*)();
inline thread_local InterruptionQuestion interruption_question = nullptr;

// Part of the contract of every loop that may run for more than about a second: everything it holds is
// released when the question throws.
inline void allow_interruption() {
  if (interruption_question != nullptr) interruption_question();
}

}  // namespace penstock
