// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedule/passes/compute.h"
#include "schedule/program_examples.h"

namespace penstock::schedule {
namespace {

Bytes bytes_by_slice(int micro_batch, int slice) { return 1000 * (micro_batch + 1) + slice; }

std::vector<Program> examples(int lead = 1) {
  std::vector<Program> programs;
  for (const Schedule& schedule : example_schedules()) {
    programs.push_back(add_transfers(compute_only(schedule), bytes_by_slice, lead));
  }
  return programs;
}

// The receive a consumer's key names, in the sender's words.
Key sender_key(const Op& receive) {
  return receive.key.at_stage(receive.key.stage + (receive.kind == OpKind::ReceiveForward ? -1 : 1));
}

TEST(AddTransfers, ReceivesComeInTheOrderOfTheSends) {
  for (const Program& program : examples()) {
    std::map<std::tuple<int, int, Channel>, std::vector<std::pair<Key, Bytes>>> sent, received;
    for (int device = 0; device < program.device_count(); ++device) {
      for (const Op& op : program.devices[device].ops) {
        if (is_send(op.kind)) sent[{device, op.peer, channel_of(op.kind)}].push_back({op.key, op.bytes});
        if (is_receive(op.kind))
          received[{op.peer, device, channel_of(op.kind)}].push_back({sender_key(op), op.bytes});
      }
    }
    EXPECT_EQ(sent, received) << program.name;
  }
}

TEST(AddTransfers, ConsumersWaitForTheirReceiveAndSendsForTheirProducer) {
  for (const Program& program : examples()) {
    for (const DeviceProgram& device : program.devices) {
      std::map<std::pair<OpKind, Key>, std::uint32_t> receive_at;
      for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
        const Op& op = device.ops[i];
        if (is_receive(op.kind)) receive_at[{op.kind, op.key}] = i;
        if (op.kind == OpKind::Forward || is_backward(op.kind)) {
          const OpKind wanted = op.kind == OpKind::Forward ? OpKind::ReceiveForward : OpKind::ReceiveBackward;
          const auto receive = receive_at.find({wanted, op.key});
          const auto after = device.after_of(op);
          ASSERT_EQ(after.size(), receive == receive_at.end() ? 0u : 1u);
          for (const std::uint32_t wait : after) EXPECT_EQ(wait, receive->second);
        }
        if (is_send(op.kind)) {
          ASSERT_EQ(device.after_of(op).size(), 1u);
          EXPECT_EQ(device.after_of(op)[0], i - 1);
          EXPECT_EQ(device.ops[i - 1].key, op.key);
        }
      }
    }
  }
}

TEST(AddTransfers, EveryResultNeededElsewhereIsSentOnceAndNothingElse) {
  for (const Schedule& schedule : example_schedules()) {
    std::map<std::pair<bool, Key>, int> home;  // [forward?, key] -> device
    for (int device = 0; device < schedule.device_count(); ++device) {
      for (const Action& a : schedule.devices[device]) {
        if (a.kind == Kind::Forward || is_backward(a.kind)) {
          home[{a.kind == Kind::Forward, a.key}] = device;
        }
      }
    }
    std::set<std::pair<bool, Key>> expected, sent;
    for (const auto& [key, device] : home) {
      const auto& [forward, place] = key;
      const auto next = home.find({forward, place.at_stage(place.stage + (forward ? 1 : -1))});
      if (next != home.end() && next->second != device) expected.insert(key);
    }
    for (const DeviceProgram& device : add_transfers(compute_only(schedule), {}).devices) {
      for (const Op& op : device.ops) {
        if (!is_send(op.kind)) continue;
        EXPECT_TRUE(sent.insert({op.kind == OpKind::SendForward, op.key}).second);
      }
    }
    EXPECT_EQ(sent, expected) << schedule.name;
  }
}

TEST(AddTransfers, ReceivesArePostedTheLeadAheadOfTheirConsumerWhenOrdersAgree) {
  const Schedule schedule = generate("1f1b", request(4, 8));
  for (const int lead : {0, 1, 2, 3}) {
    for (const DeviceProgram& device : add_transfers(compute_only(schedule), {}, lead).devices) {
      std::vector<std::uint32_t> compute;
      for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
        if (is_action(device.ops[i].kind)) compute.push_back(i);
      }
      for (std::size_t c = 0; c < compute.size(); ++c) {
        for (const std::uint32_t wait : device.after_of(device.ops[compute[c]])) {
          const auto before = std::ranges::lower_bound(compute, wait) - compute.begin();
          EXPECT_EQ(before, std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(c) - lead));
          EXPECT_EQ(device.after_of(device.ops[wait]).size(), before == 0 ? 0u : 1u);
          for (const std::uint32_t posted : device.after_of(device.ops[wait]))
            EXPECT_EQ(posted, compute[before - 1]);
        }
      }
    }
  }
}

TEST(AddTransfers, ReceivesFollowTheSendsEvenWhereConsumersDoNot) {
  const Schedule schedule{
      "crossed", 2, {1, 1}, {{forward(0, 0), forward(0, 1)}, {forward(1, 1), forward(1, 0)}}};
  const Program program = add_transfers(compute_only(schedule), {}, 0);
  const std::vector<Op>& ops = program.devices[1].ops;
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0].kind, OpKind::ReceiveForward);
  EXPECT_EQ(ops[0].key.micro_batch, 0);
  EXPECT_EQ(ops[1].kind, OpKind::ReceiveForward);
  EXPECT_EQ(ops[1].key.micro_batch, 1);
  EXPECT_EQ(program.devices[1].after_of(ops[2])[0], 1u);
  EXPECT_EQ(program.devices[1].after_of(ops[3])[0], 0u);
}

}  // namespace
}  // namespace penstock::schedule
