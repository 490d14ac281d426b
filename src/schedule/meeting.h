// SPDX-License-Identifier: Apache-2.0
// Which devices run a collective together. Among the collectives with the same members, the k-th of each
// device form one meeting: it begins when all members have issued theirs and ends for all at the same time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "schedule/program.h"

namespace penstock::schedule {

// Devices of a program: two, one, or all (-1, -1).
struct Members {
  std::int32_t low = -1;
  std::int32_t high = -1;

  bool all() const { return low < 0; }
  bool alone() const { return low >= 0 && low == high; }
  bool contain(int device) const { return all() || device == low || device == high; }
  std::size_t count(const Program& program) const { return all() ? program.devices.size() : alone() ? 1 : 2; }

  friend auto operator<=>(const Members&, const Members&) = default;
};

// The members of a collective of this device. The vocabulary and world groups and LOSS include all devices.
// In the pipeline group an op with a peer includes the two devices (the two sides of a tied embedding); an op
// without a peer has both sides on this device. The ranks of any other group run the same op list, so within
// the program the device is the only member.
inline Members meeting_of(int device, const Op& op) {
  const bool across = op.group == mesh::Group::Vocabulary || op.group == mesh::Group::World;
  if (across || op.kind == OpKind::VocabularyLoss) return {};
  if (op.group != mesh::Group::Pipeline || op.peer < 0) return {device, device};
  return device < op.peer ? Members{device, op.peer} : Members{op.peer, device};
}

}  // namespace penstock::schedule
