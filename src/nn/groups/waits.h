// SPDX-License-Identifier: Apache-2.0
// Communication of a group's ranks: timed, and named by its failures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/clock.h"
#include "comm/communicator.h"

namespace penstock::nn {

// On the rank's stream, not on the host: the host runs ahead of a card, so that its own wait would also count
// what the card had still to do.
struct Wait {
  backend::Moment start, end;
};
using Waits = std::vector<Wait>;

// Adds the time of `move`, unless it throws.
template <class Move>
void timed_part(const std::string& name, Waits& waits, Move&& move) {
  Wait wait{.start = backend::moment_now(), .end = {}};
  comm::as_part_of(name, std::forward<Move>(move));
  wait.end = backend::moment_now();
  waits.push_back(std::move(wait));
}

}  // namespace penstock::nn
