// SPDX-License-Identifier: Apache-2.0
// The kinds of failure and who may raise them.
//
// Wrong input is an InputError, thrown at the boundary where the input is read. A failure of the environment
// at run time (a peer died, a disk is full) is a RunError. A check ("is this schedule legal?") returns
// findings and throws nothing. A broken internal invariant is a PENSTOCK_CHECK. Only main turns failures into
// text and an exit code; the library never prints and never exits.
#pragma once

#include <stdexcept>
#include <string>

namespace penstock {

// Exit codes of the program (design: "Command line").
enum class Exit : int { Done = 0, No = 1, WrongInput = 2, Failed = 3 };

// Wrong input: the message names the part, the value, and what would be valid. Exit 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws InputError with the message if the condition is false. The message is composed in either case: not
// for loops over long input, nor for words about what is only there in the bad case.
inline void require(bool good, const std::string& message) {
  if (!good) throw InputError(message);
}

// The input is valid but the answer is negative (nothing fits, an illegal schedule). Exit 1.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A failure at run time: a lost peer, an I/O error, a loss that is not finite. Exit 3.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns work(). Prefixes any InputError with the key of the value: "data.text: none.txt: cannot be opened".
template <class Work>
auto on_behalf_of(const std::string& key, Work&& work) try {
  return work();
} catch (const InputError& error) {
  throw InputError(key + ": " + error.what());
}

[[noreturn]] void broken_invariant(const char* condition, const char* reason, const char* file, int line);

}  // namespace penstock

// For internal errors: always on; `reason` says why the condition must hold.
#define PENSTOCK_CHECK(condition, reason) \
  ((condition) ? void() : ::penstock::broken_invariant(#condition, reason, __FILE__, __LINE__))
