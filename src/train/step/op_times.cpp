// SPDX-License-Identifier: Apache-2.0
#include "train/step/op_times.h"

#include <utility>

namespace penstock::train {

void OpTimes::restart(std::size_t ops) {
  spans_.assign(ops, {});
  events_.assign(ops, {});
  clock_.restart();
}

std::vector<schedule::Event> OpTimes::events() {
  for (std::size_t op = 0; op < spans_.size(); ++op) {
    if (spans_[op]) events_[op] = {clock_.seconds(spans_[op]->start), clock_.seconds(spans_[op]->end)};
  }
  return std::move(events_);
}

}  // namespace penstock::train
