// SPDX-License-Identifier: Apache-2.0
// Who carries out a collective together. Of all collectives with the same members, the k-th on each device
// meet: they begin when all members have issued theirs and end together.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "schedule/program.h"

namespace penstock::schedule {

// Devices of a program: two, one alone, or all (-1, -1).
struct Members {
  std::int32_t low = -1;
  std::int32_t high = -1;

  bool all() const { return low < 0; }
  bool alone() const { return low >= 0 && low == high; }
  bool contain(int device) const { return all() || device == low || device == high; }
  std::size_t count(const Program& program) const { return all() ? program.devices.size() : alone() ? 1 : 2; }

  friend auto operator<=>(const Members&, const Members&) = default;
};

// Of a collective of this device. Groups across the pipeline meet its peer where it names one (the two sides
// of a tied embedding) and all devices otherwise, except that a REDUCE_GRAD over the pipeline without a peer
// has both sides here. The ranks of any other group walk the same list, so that the device is alone in the
// program.
inline Members meeting_of(int device, const Op& op) {
  const bool across = op.group == mesh::Group::Vocabulary || op.group == mesh::Group::World;
  if (across || op.kind == OpKind::VocabularyLoss) return {};
  if (op.group != mesh::Group::Pipeline || op.peer < 0) return {device, device};
  return device < op.peer ? Members{device, op.peer} : Members{op.peer, device};
}

}  // namespace penstock::schedule
