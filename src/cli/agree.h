// SPDX-License-Identifier: Apache-2.0
// Collective check, before any rank begins to work, whether a rank refuses its input.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/communicator.h"

namespace penstock::cli {

struct Refusal {
  std::string text;  // empty: none
  Exit exit_code = Exit::Done;
  explicit operator bool() const { return !text.empty(); }
};

// The work's InputError or NoAnswer, if it throws one.
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

// The refusal of the lowest rank that has one, on all ranks; of another than rank 0, with rank and host.
// Collective.
Refusal agree(const Refusal& mine, comm::Communicator& world);

// Whether it is so on any rank. Collective.
bool on_any_rank(bool here, comm::Communicator& world);

// Throws InputError on ranks whose configuration (one line per setting or file) differs from rank 0's.
// Collective.
void require_same(const std::string& configuration, comm::Communicator& world);

}  // namespace penstock::cli
