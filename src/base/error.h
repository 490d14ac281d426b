// SPDX-License-Identifier: Apache-2.0
// The kinds of failure, and who may raise them.
//
// Wrong input is an InputError, thrown at the boundary where the input is read. A failure of the world while
// running (a peer died, a disk is full) is a RunError. A question ("is this legal?") returns findings and
// throws nothing. A broken invariant of our own is a PENSTOCK_CHECK. Only main turns failures into text and
// an exit code; the library never prints and never exits.
#pragma once

#include <stdexcept>
#include <string>

namespace penstock {

// Exit codes of the program (design: "Command line").
enum class Exit : int { Done = 0, No = 1, WrongInput = 2, Failed = 3 };

// Wrong input: the message names the part, the value, and what would have been right. Exit 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Nothing wrong with the input, yet the answer is no (nothing fits, an illegal schedule). Exit 1.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A failure while running: a lost peer, an I/O error, a loss that is not finite. Exit 3.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What work() returns. Wrong input that it finds is told with the key whose value led there:
// "data.text: none.txt: cannot be opened".
template <class Work>
auto on_behalf_of(const std::string& key, Work&& work) try {
  return work();
} catch (const InputError& error) {
  throw InputError(key + ": " + error.what());
}

[[noreturn]] void broken_invariant(const char* condition, const char* reason, const char* file, int line);

}  // namespace penstock

// Our own mistakes: always on, with the reason why the condition must hold.
#define PENSTOCK_CHECK(condition, reason) \
  ((condition) ? void() : ::penstock::broken_invariant(#condition, reason, __FILE__, __LINE__))
