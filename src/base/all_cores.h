// SPDX-License-Identifier: Apache-2.0
// A loop whose calls run on all cores, and which can be interrupted (base/interruption.h).
#pragma once

#include <cstddef>
#include <functional>

namespace penstock {

// Threads that on_all_cores works with, the caller's own among them.
std::size_t core_count();

// Calls work(i, thread) once for each i below `count`; calls with the same `thread`, below core_count(), run
// one after the other; those with thread 0 run on the caller's own thread. Returns when the last has ended.
// The caller's interruption question is asked also while it waits for the others. When it or a call throws,
// no further call begins, calls on other threads than the caller's end at their next allow_interruption(),
// and one exception goes on to the caller: that of its own thread, or else the first of the others.
void on_all_cores(std::size_t count, const std::function<void(std::size_t i, std::size_t thread)>& work);

}  // namespace penstock
