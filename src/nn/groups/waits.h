// SPDX-License-Identifier: Apache-2.0
// Communication of a group's ranks: timed, and named by its failures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/clock.h"
#include "comm/communicator.h"

namespace penstock::nn {

// Of the compute device: the host issues work ahead of a card, and a wait of the host's may end when the card
// has done all of it.
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
