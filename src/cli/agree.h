// SPDX-License-Identifier: Apache-2.0
// Collective check whether any rank refuses its input, before any rank begins to work.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/communicator.h"

namespace penstock::cli {

struct Refusal {
  std::string text;  // empty: no refusal
  Exit exit_code = Exit::Done;
  explicit operator bool() const { return !text.empty(); }
};

// Runs `work` and returns its InputError or NoAnswer as a refusal, if it throws one.
template <class Work>
Refusal refusal_of(Work&& work) {
  try {
    work();
    return {};
  } catch (const InputError& error) {
    return {error.what(), Exit::WrongInput};
  } catch (const NoAnswer& error) {
    return {error.what(), Exit::No};
  }
}

// Returns the refusal of the lowest refusing rank on all ranks; names rank and host unless that is rank 0.
// Collective.
Refusal agree(const Refusal& mine, comm::Communicator& world);

// Returns whether `here` is true on any rank. Collective.
bool on_any_rank(bool here, comm::Communicator& world);

// Throws InputError on ranks whose configuration (one line per setting or file) differs from rank 0's.
// Collective.
void require_same(const std::string& configuration, comm::Communicator& world);

}  // namespace penstock::cli
