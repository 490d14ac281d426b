// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes find out together whether any of them refuses its input, before one begins to
// work.
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

// What the work throws, when it throws that its input is wrong or its answer no.
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

// The refusal of the lowest rank that has one, on all ranks. Collective.
Refusal agree(const Refusal& mine, comm::Communicator& world);

// Throws InputError on every rank whose configuration, a line a setting, is not that of rank 0. Collective.
void require_same(const std::string& configuration, comm::Communicator& world);

}  // namespace penstock::cli
