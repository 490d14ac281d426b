// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/transfers.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/interruption.h"
#include "schedule/passes/rewriter.h"
#include "schedule/program_index.h"
#include "schedule/slot_grid.h"

namespace penstock::schedule {
namespace {

struct Incoming {
  Op receive;
  std::uint32_t consumer = 0;  // index into the receiver's ops
  int sent_in = 0;             // slot of the producer, if devices run in lock step
  std::uint32_t post = 0;      // the receive is issued just before this op
};

// The messages to one device by (source, channel), in the order of their sends.
using Inbox = std::map<std::pair<int, Channel>, std::vector<Incoming>>;

// The consumer of the op's result on another device; does not exist if the result stays.
Place consumer_of(const ProgramIndex& index, const Op& op, int device) {
  Place place;
  if (op.kind == OpKind::Forward) place = index.forward(op.key.at_stage(op.key.stage + 1));
  if (is_backward(op.kind)) place = index.backward(op.key.at_stage(op.key.stage - 1));
  return place.device == device ? Place{} : place;
}

Op send_of(const Op& producer, int to, Bytes bytes) {
  const OpKind kind = producer.kind == OpKind::Forward ? OpKind::SendForward : OpKind::SendBackward;
  return {.key = producer.key, .kind = kind, .peer = to, .bytes = bytes};
}

Op receive_of(const Op& send, int from) {
  const bool forward = send.kind == OpKind::SendForward;
  Op receive = send;
  receive.kind = forward ? OpKind::ReceiveForward : OpKind::ReceiveBackward;
  receive.key.stage = forward ? send.key.stage + 1 : send.key.stage - 1;
  receive.peer = from;
  return receive;
}

// [device][op] slots. Empty unless inputs may arrive early: several chunks per device, in lock step.
using Slots = std::vector<std::vector<int>>;

Slots slots_of(const Program& program) {
  if (program.stages == program.device_count()) return {};
  Program actions{program.name, program.stages, program.slices, {}};
  for (const DeviceProgram& device : program.devices) {
    DeviceProgram& row = actions.devices.emplace_back();
    for (Op op : device.ops) {
      op.after_count = 0;
      if (is_action(op.kind)) row.ops.push_back(op);
    }
  }
  const std::optional<SlotGrid> grid = find_slot_grid(actions);
  if (!grid) return {};
  Slots slots;
  for (int device = 0; device < program.device_count(); ++device) {
    std::vector<int>& row = slots.emplace_back();
    std::size_t action = 0;
    for (const Op& op : program.devices[device].ops) {
      row.push_back(is_action(op.kind) ? grid->slot_of[device][action++] : row.empty() ? 0 : row.back());
    }
  }
  return slots;
}

std::vector<Inbox> deliver(const Program& program, const ProgramIndex& index, const TransferBytes& bytes,
                           const Slots& slots) {
  std::vector<Inbox> inboxes(program.devices.size());
  for (int device = 0; device < program.device_count(); ++device) {
    const std::vector<Op>& ops = program.devices[device].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Place consumer = consumer_of(index, ops[i], device);
      if (!consumer.exists()) continue;
      const Op send = send_of(ops[i], consumer.device, bytes_of(bytes, ops[i]));
      inboxes[consumer.device][{device, channel_of(send.kind)}].push_back(
          {receive_of(send, device), consumer.op, slots.empty() ? 0 : slots[device][i]});
    }
  }
  return inboxes;
}

// For each op, the action `lead` before it (the first one if there are fewer).
std::vector<std::uint32_t> posting_points(const DeviceProgram& device, int lead) {
  std::vector<std::uint32_t> compute;
  std::vector<std::uint32_t> points;
  points.reserve(device.ops.size());
  for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
    if (is_action(device.ops[i].kind)) compute.push_back(i);
    const std::size_t ordinal = compute.empty() ? 0 : compute.size() - 1;
    points.push_back(compute.empty() ? 0 : compute[ordinal - std::min<std::size_t>(ordinal, lead)]);
  }
  return points;
}

// The first op of a later slot.
std::uint32_t first_after(const std::vector<int>& slots, int slot) {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(slots, slot) - slots.begin());
}

// Returns the receives in posting order. Per channel they are posted in the order of the sends, whatever the
// order of the consumers.
std::vector<Incoming> order_receives(Inbox& inbox, const DeviceProgram& device, int lead,
                                     const std::vector<int>* slots) {
  const std::vector<std::uint32_t> points = posting_points(device, lead);
  std::vector<Incoming> ordered;
  for (auto& [source, messages] : inbox) {
    std::uint32_t latest = static_cast<std::uint32_t>(device.ops.size());
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      latest = std::min(latest, points[message->consumer]);
      if (slots) latest = std::min(latest, first_after(*slots, message->sent_in));
      message->post = latest;
    }
    ordered.insert(ordered.end(), messages.begin(), messages.end());
    std::vector<Incoming>().swap(messages);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Incoming& a, const Incoming& b) { return a.post < b.post; });
  return ordered;
}

DeviceProgram with_transfers(const Program& program, const ProgramIndex& index, int device, Inbox& inbox,
                             const TransferBytes& bytes, int lead, const std::vector<int>* slots) {
  constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
  const DeviceProgram& source = program.devices[device];
  const std::vector<Incoming> receives = order_receives(inbox, source, lead, slots);
  std::vector<std::uint32_t> receive_for(source.ops.size(),
                                         kNone);  // [consumer's old index] -> receive's new index
  std::uint32_t last_action = kNone;              // new index
  std::size_t next = 0;
  Rewriter rewriter(source, receives.size() + source.ops.size());
  for (std::uint32_t i = 0; i < source.ops.size(); ++i) {
    for (; next < receives.size() && receives[next].post == i; ++next) {
      const std::span<const std::uint32_t> waits(&last_action, last_action == kNone ? 0 : 1);
      receive_for[receives[next].consumer] = rewriter.insert(receives[next].receive, waits);
    }
    const std::uint32_t kept = rewriter.keep_next({&receive_for[i], receive_for[i] == kNone ? 0u : 1u});
    if (!is_action(source.ops[i].kind)) continue;
    last_action = kept;
    const Place consumer = consumer_of(index, source.ops[i], device);
    if (!consumer.exists()) continue;
    rewriter.insert(send_of(source.ops[i], consumer.device, bytes_of(bytes, source.ops[i])), {&kept, 1});
  }
  return rewriter.take();
}

}  // namespace

Program add_transfers(const Program& program, const TransferBytes& bytes, int lead) {
  PENSTOCK_CHECK(lead >= 0, "a receive cannot be posted after its consumer");
  const ProgramIndex index(program);
  const Slots slots = slots_of(program);
  std::vector<Inbox> inboxes = deliver(program, index, bytes, slots);
  Program lowered{program.name, program.stages, program.slices, {}};
  lowered.devices.reserve(program.devices.size());
  for (int device = 0; device < program.device_count(); ++device) {
    allow_interruption();
    lowered.devices.push_back(with_transfers(program, index, device, inboxes[device], bytes, lead,
                                             slots.empty() ? nullptr : &slots[device]));
  }
  return lowered;
}

}  // namespace penstock::schedule
