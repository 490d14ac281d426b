// SPDX-License-Identifier: Apache-2.0
#include "train/offload/rooms.h"

#include <gtest/gtest.h>

#include <map>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"

namespace penstock::train {
namespace {

using schedule::OpKind;

// Rooms in use at the same time must not overlap; walks the list like the trainer.
Bytes most_in_use(const schedule::DeviceProgram& list, const OffloadRooms& rooms) {
  std::map<std::uint32_t, Bytes> held;  // op of the OFFLOAD, of records that are away
  std::map<schedule::Key, std::uint32_t> offload_of;
  Bytes most = 0;
  for (std::uint32_t i = 0; i < list.ops.size(); ++i) {
    const schedule::Op& op = list.ops[i];
    const schedule::Key key = op.key;
    if (op.kind == OpKind::Offload) {
      for (const auto& [other, bytes] : held) {
        EXPECT_TRUE(rooms.begins[i] >= rooms.begins[other] + bytes ||
                    rooms.begins[other] >= rooms.begins[i] + op.bytes);
      }
      held[offload_of[key] = i] = op.bytes;
      Bytes sum = 0;
      for (const auto& [other, bytes] : held) sum += bytes;
      most = std::max(most, sum);
      EXPECT_LE(rooms.begins[i] + op.bytes, rooms.size);
    }
    if (op.kind == OpKind::Reload) {
      EXPECT_EQ(rooms.begins[i], rooms.begins[offload_of.at(key)]);
    }
    if (lane_of(op.kind) != schedule::Lane::Compute) continue;
    for (const std::uint32_t wait : list.after_of(op)) {
      const schedule::Op& copy = list.ops[wait];
      if (copy.kind == OpKind::Reload) held.erase(offload_of.at(copy.key));
    }
  }
  return most;
}

TEST(OffloadRooms, NeverOverlapAndAreNoMoreThanWhatIsAwayWhereRecordsAreEqual) {
  constexpr Bytes kRecord = 3 * 4096;
  for (const schedule::Generator& generator : schedule::generators()) {
    const schedule::Schedule made = schedule::generate(generator.name, schedule::request(4, 12));
    const auto program = lower(made, {.offload_bytes = [](const schedule::Key&) { return kRecord; }});
    for (const schedule::DeviceProgram& list : program.devices) {
      const OffloadRooms rooms = find_rooms(list);
      EXPECT_EQ(rooms.size, most_in_use(list, rooms)) << generator.name;
    }
  }
}

TEST(OffloadRooms, OfUnequalRecordsDoNotOverlapEither) {
  const schedule::Schedule made = schedule::generate("slimpipe", schedule::request(4, 3, 12));
  const auto program = lower(made, {.offload_bytes = [](const schedule::Key& key) {
                               return Bytes{100 + 5000 * key.slice + key.stage};
                             }});
  for (const schedule::DeviceProgram& list : program.devices) most_in_use(list, find_rooms(list));
}

}  // namespace
}  // namespace penstock::train
