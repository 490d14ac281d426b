// SPDX-License-Identifier: Apache-2.0
#include "schedule/slot_grid.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace penstock::schedule {
namespace {

// The F, or the B and I, of a device, in order.
std::vector<Op> items_of(const DeviceProgram& device, bool forward) {
  std::vector<Op> items;
  for (const Op& op : device.ops) {
    if (forward ? op.kind == OpKind::Forward : is_backward(op.kind)) items.push_back(op);
  }
  return items;
}

// Returns whether the device's items are those of device 0 with stages shifted by `rank`.
bool follow(const std::vector<Op>& first, const std::vector<Op>& items, int rank, int devices) {
  return std::ranges::equal(first, items, [&](const Op& a, const Op& b) {
    return a.key.stage % devices == 0 && b.key.stage == a.key.stage + rank &&
           b.key.micro_batch == a.key.micro_batch && b.key.slice == a.key.slice;
  });
}

// Returns whether each item of device 0 comes at least `devices` items after the one of the chunk that hands
// on to it: the slots in between are those in which the other devices work on its input.
bool turns_take_a_round(const Program& program, const std::vector<Op>& first, bool forward) {
  const int devices = program.device_count();
  const std::int64_t chunks = program.stages / devices;
  std::vector<std::int64_t> begin{0};  // of each micro-batch's slices
  for (const int slices : program.slices) begin.push_back(begin.back() + slices);
  std::vector<std::int64_t> items(static_cast<std::size_t>(begin.back() * chunks), -1);
  const auto item = [&](const Key& key, std::int64_t chunk) -> std::int64_t& {
    return items[static_cast<std::size_t>((begin[key.micro_batch] + key.slice) * chunks + chunk)];
  };
  for (std::int64_t i = 0; i < std::ssize(first); ++i) {
    const Key& key = first[static_cast<std::size_t>(i)].key;
    const std::int64_t chunk = key.stage / devices, source = chunk + (forward ? -1 : 1);
    item(key, chunk) = i;
    if (source < 0 || source >= chunks) continue;
    if (const std::int64_t from = item(key, source); from < 0 || i - from < devices) return false;
  }
  return true;
}

bool items_are_in_step(const Program& program) {
  for (const bool forward : {true, false}) {
    const std::vector<Op> first = items_of(program.devices.front(), forward);
    for (int rank = 0; rank < program.device_count(); ++rank) {
      if (!follow(first, items_of(program.devices[rank], forward), rank, program.device_count()))
        return false;
    }
    if (!turns_take_a_round(program, first, forward)) return false;
  }
  return true;
}

// The slot of each backward item on the last device, and of p - 1 imaginary ones after them.
std::vector<int> backward_slots(const DeviceProgram& last, int devices) {
  std::vector<int> slots;
  int slot = devices - 2;
  int taken = -1;
  for (const Op& op : last.ops) {
    if (op.kind == OpKind::Forward) ++slot;
    if (!is_backward(op.kind)) continue;
    taken = std::max(slot, taken + 1);
    slots.push_back(taken);
  }
  for (int more = 1; more < devices; ++more) slots.push_back(++taken);
  return slots;
}

}  // namespace

std::optional<SlotGrid> find_slot_grid(const Program& program) {
  PENSTOCK_CHECK(!program.devices.empty(), "a program has devices");
  if (!items_are_in_step(program)) return std::nullopt;
  const int devices = program.device_count();
  const std::vector<int> last = backward_slots(program.devices.back(), devices);
  SlotGrid grid;
  for (int rank = 0; rank < devices; ++rank) {
    std::vector<int>& slots = grid.slot_of.emplace_back();
    int forwards = 0, half = -1;  // a slot has two halves: forward, backward
    std::size_t backwards = 0;
    for (const Op& op : program.devices[rank].ops) {
      PENSTOCK_CHECK(is_action(op.kind), "slots are found before other ops are added");
      int now = std::max(half, 0);
      if (op.kind == OpKind::Forward) now = 2 * (rank + forwards++);
      if (is_backward(op.kind)) now = 2 * last[backwards++ + devices - 1 - rank] + 1;
      if (op.kind != OpKind::BackwardWeight && now <= half) return std::nullopt;
      half = now;
      slots.push_back(half / 2);
    }
  }
  return grid;
}

std::vector<FullSlot> full_slots(const Program& compute_only, const SlotGrid& grid) {
  std::map<std::pair<int, bool>, FullSlot> slots;
  for (int device = 0; device < compute_only.device_count(); ++device) {
    const std::vector<Op>& ops = compute_only.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == OpKind::BackwardWeight) continue;
      const int number = grid.slot_of[device][i];
      const bool backward = is_backward(ops[i].kind);
      const auto slot = slots.try_emplace({number, backward}, FullSlot{number, backward, {}}).first;
      slot->second.ops.push_back(i);
    }
  }
  std::vector<FullSlot> full;
  for (auto& [key, slot] : slots) {
    if (std::ssize(slot.ops) == compute_only.device_count()) full.push_back(std::move(slot));
  }
  return full;
}

}  // namespace penstock::schedule
