// SPDX-License-Identifier: Apache-2.0
// Times a group's communication and names it in failures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/clock.h"
#include "comm/communicator.h"

namespace penstock::nn {

// On the rank's stream, not on the host: the host runs ahead of a GPU, so a host-side wait would include the
// GPU's remaining work.
struct Wait {
  backend::Moment start, end;
};
using Waits = std::vector<Wait>;

// Runs `move` and adds its time, unless it throws.
template <class Move>
void timed_part(const std::string& name, Waits& waits, Move&& move) {
  Wait wait{.start = backend::moment_now(), .end = {}};
  comm::as_part_of(name, std::forward<Move>(move));
  wait.end = backend::moment_now();
  waits.push_back(std::move(wait));
}

}  // namespace penstock::nn
