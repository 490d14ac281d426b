// SPDX-License-Identifier: Apache-2.0
// Communication of a group's ranks: timed, and named by its failures.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "comm/communicator.h"

namespace penstock::nn {

// Adds the seconds of `move` to `waited`, unless it throws.
template <class Move>
void timed_part(const std::string& name, Seconds& waited, Move&& move) {
  const Seconds began = steady_seconds();
  comm::as_part_of(name, std::forward<Move>(move));
  waited += steady_seconds() - began;
}

}  // namespace penstock::nn
