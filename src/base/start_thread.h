// SPDX-License-Identifier: Apache-2.0
// Threads that the system may refuse to start.
#pragma once

#include <string>
#include <system_error>

#include "base/error.h"

namespace penstock {

// Returns start(), which starts a thread. If the system refuses it, throws a RunError that says what it was
// for: "no thread for copies: Resource temporarily unavailable; ...".
template <class Start>
auto start_thread(const char* purpose, Start&& start) try {
  return start();
} catch (const std::system_error& refused) {
  throw RunError(std::string("no thread for ") + purpose + ": " + refused.code().message() +
                 "; allow more processes (ulimit -u, a container's limit) or memory, or start fewer ranks");
}

}  // namespace penstock
