// SPDX-License-Identifier: Apache-2.0
// A parallel loop over all cores that can be interrupted (base/interruption.h).
#pragma once

#include <cstddef>
#include <functional>

namespace penstock {

// Number of threads that on_all_cores uses, including the caller's.
std::size_t core_count();

// Calls work(i, thread) once for each i below `count`. Calls with the same `thread`, below core_count(), run
// one after the other; thread 0 is the caller's own. Returns when all calls have ended. The caller's
// interruption question is also asked while it waits for the others. If it or a call throws, no further call
// begins, calls on other threads end at their next allow_interruption(), and one exception reaches the
// caller: its own thread's, else the first of the others.
void on_all_cores(std::size_t count, const std::function<void(std::size_t i, std::size_t thread)>& work);

}  // namespace penstock
