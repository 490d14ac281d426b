// SPDX-License-Identifier: Apache-2.0
#include "train/offload/rooms.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace penstock::train {
namespace {

using schedule::Op;
using schedule::OpKind;

constexpr Bytes kPage = 4096;

Bytes rounded(Bytes bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The first gap between taken rooms that is large enough.
Bytes first_fit(const std::map<Bytes, Bytes>& taken, Bytes length) {
  Bytes begin = 0;
  for (const auto& [start, end] : taken) {
    if (start - begin >= length) break;
    begin = end;
  }
  return begin;
}

}  // namespace

OffloadRooms find_rooms(const schedule::DeviceProgram& list) {
  OffloadRooms rooms{.begins = std::vector<Bytes>(list.ops.size(), 0)};
  std::map<Bytes, Bytes> taken;  // begin to end
  std::map<schedule::Key, Bytes> begin_of;
  for (std::uint32_t i = 0; i < list.ops.size(); ++i) {
    const Op& op = list.ops[i];
    if (op.kind == OpKind::Offload) {
      const Bytes begin = first_fit(taken, rounded(op.bytes));
      rooms.begins[i] = begin_of[op.key] = begin;
      taken[begin] = begin + rounded(op.bytes);
      rooms.size = std::max(rooms.size, taken[begin]);
    } else if (op.kind == OpKind::Reload) {
      PENSTOCK_CHECK(begin_of.contains(op.key), "a record leaves before it comes back");
      rooms.begins[i] = begin_of[op.key];
    }
    if (lane_of(op.kind) != schedule::Lane::Compute) continue;
    for (const std::uint32_t wait : list.after_of(op)) {
      if (list.ops[wait].kind == OpKind::Reload) taken.erase(rooms.begins[wait]);
    }
  }
  return rooms;
}

}  // namespace penstock::train
