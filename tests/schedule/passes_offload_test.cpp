// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "schedule/check/check.h"
#include "schedule/passes/compute.h"
#include "schedule/passes/lower.h"
#include "schedule/program_examples.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

constexpr Bytes kLeaving = 60;
Bytes leaving(const Key&) { return kLeaving; }

bool is_copy(OpKind kind) { return kind == OpKind::Offload || kind == OpKind::Reload; }

// The program without its copies, and without waits for them.
Program without_copies(const Program& program) {
  Program bare{program.name, program.stages, program.slices, {}};
  for (const DeviceProgram& device : program.devices) {
    DeviceProgram& list = bare.devices.emplace_back();
    std::vector<std::uint32_t> moved(device.ops.size());
    for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
      if (is_copy(device.ops[i].kind)) continue;
      std::vector<std::uint32_t> waits;
      for (const std::uint32_t wait : device.after_of(device.ops[i])) {
        if (!is_copy(device.ops[wait].kind)) waits.push_back(moved[wait]);
      }
      moved[i] = list.append(device.ops[i], waits);
    }
  }
  return bare;
}

std::vector<Schedule> larger_schedules() {
  std::vector<Schedule> schedules;
  for (const int p : {2, 4, 8}) {
    for (const int n : {1, 3, 8, 16}) {
      for (const int v : {1, 3}) {
        if (v > 1 && n < p) continue;
        schedules.push_back(generate("slimpipe", request(p, 3, n, v)));
      }
    }
    for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v"}) {
      schedules.push_back(generate(name, request(p, 3 * p)));
    }
  }
  return schedules;
}

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> all = example_schedules();
  for (Schedule& schedule : larger_schedules()) all.push_back(std::move(schedule));
  return all;
}

TEST(Offload, NothingToLeaveLeavesTheProgramUnchanged) {
  for (const Schedule& schedule : example_schedules()) {
    const Program program = compute_only(schedule);
    EXPECT_EQ(add_offload(program, {}), program);
    EXPECT_EQ(add_offload(program, [](const Key&) { return Bytes{0}; }), program);
  }
}

TEST(Offload, EveryScheduleStaysLegalAndKeepsItsOtherOps) {
  for (const Schedule& schedule : all_schedules()) {
    const Program program = lower(schedule, {.offload_bytes = leaving});
    const auto findings = check(program);
    EXPECT_TRUE(findings.empty()) << schedule.name << ": " << findings.front().text;
    EXPECT_EQ(without_copies(program), lower(schedule)) << schedule.name;
  }
}

// Else memory would depend on how quick messages are.
TEST(Offload, NoMessageOfTheVocabularyWaitsForACopyNorACopyForIt) {
  int copies = 0;
  for (const auto& [p, n, v] : {std::tuple{2, 6, 2}, {2, 8, 2}, {4, 8, 1}, {4, 8, 3}}) {
    const Program program = lower(generate("slimpipe", request(p, 3, n, v)),
                                  {.offload_bytes = leaving, .vocabulary = {.parallel = true}});
    EXPECT_TRUE(check(program).empty());
    for (const DeviceProgram& device : program.devices) {
      for (const Op& op : device.ops) {
        copies += is_copy(op.kind);
        for (const std::uint32_t wait : device.after_of(op)) {
          const OpKind kind = device.ops[wait].kind;
          if (op.kind == OpKind::Reload) {
            EXPECT_TRUE(lane_of(kind) == Lane::Compute || is_copy(kind));
          }
          if (is_copy(kind)) {
            EXPECT_TRUE(lane_of(op.kind) == Lane::Compute || is_copy(op.kind));
          }
        }
      }
    }
  }
  EXPECT_GT(copies, 100);
}

TEST(Offload, ARecordLeavesRightAfterItsForwardAndIsAwayForAtLeastOneAction) {
  for (const Schedule& schedule : all_schedules()) {
    for (const DeviceProgram& device : add_offload(compute_only(schedule), leaving).devices) {
      for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
        if (device.ops[i].kind != OpKind::Offload) continue;
        ASSERT_EQ(device.ops[i - 1].kind, OpKind::Forward);
        const auto names = [&](const Op& op) {
          return lane_of(op.kind) == Lane::Compute && std::ranges::count(device.after_of(op), i) > 0;
        };
        const auto released = std::ranges::find_if(device.ops, names);
        const auto reload = std::ranges::find_if(device.ops, [&](const Op& op) {
          return op.kind == OpKind::Reload && std::ranges::count(device.after_of(op), i) > 0;
        });
        ASSERT_NE(released, device.ops.end());
        EXPECT_LT(released, reload);
      }
    }
  }
}

// What is on the device before each compute op, walking the list.
struct Residence {
  int in_flight = 0;  // at most
  int resident = 0;   // at most
  int leaving = 0;    // at most: copied out and not yet waited for
  int coming = 0;     // at most: copied in and not yet used
};

Residence walk(const DeviceProgram& device) {
  Residence most;
  int in_flight = 0, away = 0, leaving_now = 0, coming = 0;
  const auto note = [&] {
    most.in_flight = std::max(most.in_flight, in_flight);
    most.resident = std::max(most.resident, in_flight - away);
    most.leaving = std::max(most.leaving, leaving_now);
    most.coming = std::max(most.coming, coming);
  };
  for (const Op& op : device.ops) {
    if (op.kind == OpKind::Offload) ++leaving_now;
    if (op.kind == OpKind::Reload) --away, ++coming;
    note();
    if (lane_of(op.kind) != Lane::Compute) continue;
    bool reloaded = false;
    for (const std::uint32_t wait : device.after_of(op)) {
      if (device.ops[wait].kind == OpKind::Offload) ++away, --leaving_now;
      reloaded |= device.ops[wait].kind == OpKind::Reload;
    }
    in_flight += op.kind == OpKind::Forward;
    note();
    in_flight -= is_backward(op.kind);
    coming -= reloaded;
  }
  return most;
}

TEST(Offload, AtMostTwoRecordsAreLeavingAndTwoComingBack) {
  for (const Schedule& schedule : all_schedules()) {
    for (const DeviceProgram& device : add_offload(compute_only(schedule), leaving).devices) {
      const Residence residence = walk(device);
      EXPECT_LE(residence.leaving, 2) << schedule.name;
      EXPECT_LE(residence.coming, 2) << schedule.name;
      // Beside those four, a record may have no time to leave.
      EXPECT_LE(residence.resident, kResidentRecords + 1) << schedule.name;
    }
  }
}

// One micro-batch alone goes backward last-in-first-out and has three on the device; of two slices the second
// has no time to leave where the steady phase is short.
TEST(Offload, FourRecordsStayOnTheDeviceAndTheRestLeaves) {
  for (const int p : {1, 2, 3, 4, 6, 8}) {
    for (const int m : {1, 2, 3, 7}) {
      for (const int n : {1, 3, 4, 8, 16}) {
        for (const int v : {1, 2, 3}) {
          if (v > 1 && n < p) continue;
          const Program program = compute_only(generate("slimpipe", request(p, m, n, v)));
          for (const DeviceProgram& device : add_offload(program, leaving).devices) {
            const Residence residence = walk(device);
            const int staying = std::min(residence.in_flight, kResidentRecords);
            const bool turns_at_once = m == 1 && n > 1 && residence.in_flight > kResidentRecords;
            EXPECT_EQ(residence.resident, turns_at_once ? 3 : staying)
                << "p" << p << " m" << m << " n" << n << " v" << v;
          }
        }
      }
    }
  }
}

TEST(Offload, OrdinarySchedulesKeepFourToo) {
  for (const char* name : {"1f1b", "gpipe", "interleaved", "breadth-first", "zb-h1", "zb-h2"}) {
    for (const int p : {4, 6, 8}) {
      for (const DeviceProgram& device :
           add_offload(compute_only(generate(name, request(p, 3 * p))), leaving).devices) {
        const Residence residence = walk(device);
        EXPECT_EQ(residence.resident, std::min(residence.in_flight, kResidentRecords)) << name << " p" << p;
      }
    }
  }
}

TEST(Offload, NothingIsUsedTooEarlyWhateverTheTimes) {
  for (const char* name : {"slimpipe", "1f1b", "zb-h1", "v-half"}) {
    const bool sliced = std::string(name) == "slimpipe";
    const Schedule schedule = generate(name, sliced ? request(2, 2, 6) : request(6, 7));
    for (unsigned seed = 0; seed < 5; ++seed) {
      EXPECT_EQ(RandomExecution(lower(schedule, {.offload_bytes = leaving}), seed).run(), "") << name;
    }
  }
}

TEST(Offload, ADeviceWithFourInFlightKeepsItsList) {
  const Program program = compute_only(generate("1f1b", request(4, 8)));
  EXPECT_EQ(add_offload(program, leaving), program);
}

TEST(Offload, RecordsThatStayMayBeChosenOneByOne) {
  const auto odd_stages = [](const Key& key) { return Bytes{key.stage % 2 ? 8 : 0}; };
  const Program program = add_offload(compute_only(generate("interleaved", request(4, 8))), odd_stages);
  for (const DeviceProgram& device : program.devices) {
    for (const Op& op : device.ops) {
      EXPECT_EQ(op.bytes, is_copy(op.kind) ? 8 : 0);
      EXPECT_TRUE(!is_copy(op.kind) || op.key.stage % 2 == 1);
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
