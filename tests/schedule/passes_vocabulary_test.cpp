// SPDX-License-Identifier: Apache-2.0
// The law of add_vocabulary(), and what check() says about its programs.
#include "schedule/passes/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "failure.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/passes/lower.h"
#include "schedule/program_checks.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"
#include "schedule/slot_grid.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

Program sharded(const Schedule& schedule) {
  const auto bytes = [](int, int) { return Bytes{64}; };
  return lower(schedule, {.transfer_bytes = bytes, .vocabulary = {true, bytes, bytes}});
}

// Slimpipe at many sizes: plain and interleaved, with equal and unequal slices, every legal group.
void for_slimpipes(const std::function<void(const Schedule&)>& body) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 3; ++m) {
      for (const int n : {1, 2, 3, 4, 5, 8, 12}) {
        for (int v = 1; v <= 3; ++v) {
          if (v > 1 && n < p) continue;
          Request asked = request(p, m, n, v);
          for (int group = v == 1 ? n : p; group <= n; ++group) {
            if (n % group != 0) continue;
            asked.group = v == 1 ? 0 : group;
            body(generate("slimpipe", asked));
          }
        }
      }
    }
    for (const std::vector<int>& slices : {std::vector{8, 5, 16}, {5, 16}, {16, 5, 5}, {5, 6, 7, 8}}) {
      for (const int v : {1, 2}) body(generate("slimpipe", {.devices = p, .slices = slices, .chunks = v}));
    }
  }
}

bool is_kind(const Op& op, OpKind kind) { return op.kind == kind; }

// Ops of the kinds before each visit of a device.
std::vector<std::pair<int, int>> forwards_and_backwards_before_visits(const DeviceProgram& device) {
  std::vector<std::pair<int, int>> counts;
  int forwards = 0, backwards = 0;
  for (const Op& op : device.ops) {
    forwards += is_kind(op, OpKind::Forward);
    backwards += is_backward(op.kind);
    if (is_kind(op, OpKind::VocabularyLoss)) counts.emplace_back(forwards, backwards);
  }
  return counts;
}

TEST(Vocabulary, VisitsStandAsManyItemsBehindAsThereAreDevicesToTheLast) {
  for_slimpipes([](const Schedule& schedule) {
    const Program program = sharded(schedule);
    const int p = program.device_count();
    const auto last = forwards_and_backwards_before_visits(program.devices[p - 1]);
    const int items =
        static_cast<int>(std::ranges::count(program.devices[0].ops, OpKind::Forward, &Op::kind));
    for (int r = 0; r < p; ++r) {
      const auto here = forwards_and_backwards_before_visits(program.devices[r]);
      ASSERT_EQ(here.size(), last.size());
      for (std::size_t k = 0; k < here.size(); ++k) {
        EXPECT_EQ(here[k].first, std::min(last[k].first + p - 1 - r, items));
        EXPECT_EQ(here[k].second, std::max(last[k].second - (p - 1 - r), 0)) << schedule.devices[r].size();
      }
    }
  });
}

TEST(Vocabulary, ProgramsOfEverySlimpipeAreLegalAndOtherwiseUnchanged) {
  for_slimpipes([](const Schedule& schedule) {
    const Program program = sharded(schedule);
    EXPECT_EQ(first_finding(program), "legal");
    Program rest{program.name, program.stages, program.slices, {}};
    for (const DeviceProgram& device : program.devices) {
      DeviceProgram& row = rest.devices.emplace_back();
      for (const Op& op : device.ops) {
        if (is_action(op.kind)) row.append({op.key, op.kind});
      }
    }
    EXPECT_EQ(rest, compute_only(schedule));
  });
}

TEST(Vocabulary, ProgramsPrintAndParse) {
  const Program program = sharded(generate("slimpipe", request(3, 2, 6, 2)));
  const std::string text = to_text(program);
  EXPECT_NE(text.find("5LOSS0.0"), std::string::npos);
  EXPECT_NE(text.find("0RECV_EMBED_GRAD1.5 from 0 bytes 64"), std::string::npos);
  EXPECT_EQ(parse_program(text, "test"), program);
}

TEST(Vocabulary, SchedulesWithoutSlotsAreRefused) {
  for (const char* name : {"1f1b", "zb-h1", "zb-v", "v-half", "dualpipe", "seq1f1b"}) {
    const Schedule schedule = generate(name, request(4, 8));
    EXPECT_FALSE(find_slot_grid(compute_only(schedule))) << name;
    const std::string refusal = failure<InputError>([&] { sharded(schedule); });
    EXPECT_NE(refusal.find("use slimpipe"), std::string::npos) << refusal;
  }
}

// An order of the items of all devices in which chunks and slices of a micro-batch follow each other.
std::vector<Key> random_items(const Request& asked, std::mt19937& random) {
  std::map<std::pair<int, int>, int> next;  // slice, by micro-batch and chunk
  std::vector<Key> items;
  const auto count =
      static_cast<std::size_t>(std::accumulate(asked.slices.begin(), asked.slices.end(), 0) * asked.chunks);
  while (items.size() < count) {
    const int micro_batch = static_cast<int>(random() % asked.slices.size());
    const int chunk = static_cast<int>(random() % static_cast<unsigned>(asked.chunks));
    int& slice = next[{micro_batch, chunk}];
    if (slice == asked.slices[micro_batch] || (chunk > 0 && next[{micro_batch, chunk - 1}] <= slice))
      continue;
    items.push_back(make_key(chunk * asked.devices, micro_batch, slice++));
  }
  return items;
}

// Devices that run a random order of items, forwards and backwards each in step; it may be illegal.
Schedule random_in_step(const Request& asked, std::mt19937& random) {
  const std::vector<Key> forwards = random_items(asked, random);
  std::vector<Key> backwards = random_items(asked, random);
  std::ranges::reverse(backwards);
  std::vector<int> slot_of;  // of the last device's backwards, and of those that the others run before
  const int p = asked.devices, items = static_cast<int>(forwards.size());
  for (int i = 0, slot = p - 1; i < items + p - 1; ++i)
    slot_of.push_back(slot = std::max(slot + (i > 0), static_cast<int>(random() % (items + p))));
  Schedule schedule{"random", p * asked.chunks, asked.slices, {}};
  for (int r = 0; r < p; ++r) {
    std::map<std::pair<int, bool>, Action> actions;
    for (int i = 0; i < items; ++i) {
      const Key& forward = forwards[i];
      const Key& backward = backwards[i];
      actions[{i + r, false}] = {forward.at_stage(forward.stage + r), Kind::Forward};
      actions[{slot_of[i + p - 1 - r], true}] = {backward.at_stage(backward.stage + r), Kind::Backward};
    }
    auto& list = schedule.devices.emplace_back();
    for (const auto& [place, action] : actions) list.push_back(action);
  }
  return schedule;
}

// Also where lists in slot order would have a device compute before its input is there: those have no grid.
TEST(Vocabulary, WhatIsPlannedOnSlotsOfAnyLegalScheduleNeverDeadlocks) {
  std::mt19937 random(1);
  int planned = 0, without_slots = 0;
  for (int i = 0; i < 30000; ++i) {
    Request asked;
    asked.devices = 2 + static_cast<int>(random() % 3);
    asked.chunks = 1 + static_cast<int>(random() % 3);
    asked.slices.assign(1 + random() % 2, 1 + static_cast<int>(random() % 4));
    const Schedule schedule = random_in_step(asked, random);
    if (!check(schedule, 1).empty()) continue;
    if (!find_slot_grid(compute_only(schedule))) {
      ++without_slots;
      continue;
    }
    ++planned;
    ASSERT_EQ(first_finding(sharded(schedule)), "legal") << to_csv(schedule);
    for (const ExchangeMode mode : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      const Program program = lower(schedule, {.vocabulary = {.parallel = true}, .exchange = {.mode = mode}});
      ASSERT_EQ(first_finding(program), "legal") << to_csv(schedule);
    }
  }
  EXPECT_GT(planned, 1000);
  EXPECT_GT(without_slots, 100);
}

TEST(Vocabulary, EveryRandomExecutionRunsRight) {
  for (const Schedule& schedule :
       {generate("slimpipe", request(2, 1, 3)), generate("slimpipe", request(3, 1, 3, 2))}) {
    const Program program = sharded(schedule);
    for (unsigned seed = 0; seed < 20; ++seed) EXPECT_EQ(RandomExecution(program, seed).run(), "");
  }
}

TEST(CheckVocabulary, EveryDeletedOpIsFound) {
  const Program program = sharded(generate("slimpipe", request(3, 1, 3)));
  for (int device = 0; device < program.device_count(); ++device) {
    for (std::uint32_t i = 0; i < program.devices[device].ops.size(); ++i) {
      EXPECT_NE(first_finding(without(program, device, i)), "legal")
          << to_token(program.devices[device].ops[i], true);
    }
  }
}

TEST(CheckVocabulary, AWaitWhoseLossBreaksAnExecutionIsMissed) {
  const Program program = sharded(generate("slimpipe", request(2, 1, 2)));
  int broken = 0;
  for (int device = 0; device < program.device_count(); ++device) {
    for (std::size_t i = 0; i < program.devices[device].ops.size(); ++i) {
      Program loose = program;
      loose.devices[device].ops[i].after_count = 0;
      bool fails = false;
      for (unsigned seed = 0; seed < 60 && !fails; ++seed)
        fails = !RandomExecution(loose, seed).run().empty();
      EXPECT_EQ(first_finding(loose) != "legal", fails) << "device " << device << ", op " << i << "\n"
                                                        << to_text(program);
      broken += fails;
    }
  }
  EXPECT_GT(broken, 10);
}

// Exchanges two ops of a device with nothing waiting between them.
Program with_visits_swapped(Program program, int device) {
  std::vector<Op>& ops = program.devices[device].ops;
  const auto first = std::ranges::find(ops, OpKind::VocabularyLoss, &Op::kind);
  const auto second =
      std::find_if(first + 1, ops.end(), [](const Op& op) { return op.kind == OpKind::VocabularyLoss; });
  std::swap(first->key.slice, second->key.slice);
  return program;
}

TEST(CheckVocabulary, DevicesThatVisitInAnotherOrderAreFound) {
  const Program program = sharded(generate("slimpipe", request(3, 1, 4)));
  EXPECT_EQ(first_finding(with_visits_swapped(program, 0)).substr(0, 9), "unmatched");
  EXPECT_EQ(first_finding(with_visits_swapped(program, 1)).substr(0, 9), "unmatched");
}

// Device 0 comes to a visit before the forwards that lead to it.
TEST(CheckVocabulary, AVisitThatComesTooEarlyIsACircle) {
  const std::string text = to_text(sharded(generate("slimpipe", request(2, 1, 1))));
  Program program = parse_program(text, "test");
  DeviceProgram early;
  const DeviceProgram& device = program.devices[0];
  early.append({.key = {.stage = 1}, .kind = OpKind::VocabularyLoss, .bytes = 64});
  for (const Op& op : device.ops) {
    if (op.kind == OpKind::VocabularyLoss) continue;
    std::vector<std::uint32_t> waits;
    for (const std::uint32_t wait : device.after_of(op)) {
      const auto moved = [&](std::uint32_t index) {
        std::uint32_t visits = 0;
        for (std::uint32_t k = 0; k < index; ++k) visits += device.ops[k].kind == OpKind::VocabularyLoss;
        return index + 1 - visits;
      };
      waits.push_back(moved(wait));
    }
    early.append(op, waits);
  }
  program.devices[0] = early;
  const auto place = [&](int of, OpKind kind) {
    const std::vector<Op>& ops = program.devices[of].ops;
    return " (device " + std::to_string(of) + ", position " +
           std::to_string(std::ranges::find(ops, kind, &Op::kind) - ops.begin()) + ")";
  };
  EXPECT_EQ(first_finding(program), "deadlock: device 0, position 0: 1LOSS0 waits for 1LOSS0" +
                                        place(1, OpKind::VocabularyLoss) + ", which comes after 1F0" +
                                        place(1, OpKind::Forward) + ", which waits in the same cycle")
      << to_text(program);
}

}  // namespace
}  // namespace penstock::schedule
