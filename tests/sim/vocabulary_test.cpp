// SPDX-License-Identifier: Apache-2.0
// Visits of the vocabulary in time: a barrier of all devices, free where slices are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/result.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;
using schedule::Program;

// F of slice i takes 1 on average, of which attention's share grows like i + 1/2; B takes twice that.
class VocabularyCosts final : public Costs {
 public:
  VocabularyCosts(int slices, double attention, Seconds visit)
      : slices_(slices), attention_(attention), visit_(visit) {}

  Seconds seconds(int, std::uint32_t, const Op& op) const override {
    if (op.kind == OpKind::VocabularyLoss) return visit_;
    const Seconds forward = 1 - attention_ + attention_ * (op.key.slice + 0.5) / (slices_ / 2.0);
    if (op.kind == OpKind::Forward) return forward;
    return op.kind == OpKind::Backward ? 2 * forward : 0;
  }
  Transfer transfer(int, std::uint32_t, const Op&) const override { return {}; }
  RecordBytes record(const schedule::Key&) const override { return {}; }

 private:
  double slices_, attention_;
  Seconds visit_;
};

Program sharded(const schedule::Schedule& schedule) {
  return schedule::lower(schedule, {.vocabulary = {.parallel = true}, .optimizer_step = false});
}

TEST(Visits, AddTheirOwnTimeAndNoBubbleWhenSlicesAreEqual) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 4}) {
      for (const int n : {8, 16}) {
        for (const int v : {1, 2, 3}) {
          const VocabularyCosts costs(n, 0, 0.25);
          const Result result = evaluate(sharded(generate("slimpipe", schedule::request(p, m, n, v))), costs);
          ASSERT_FALSE(result.deadlock);
          EXPECT_NEAR(result.makespan, 3.0 * (m * n * v + p - 1) + 0.25 * m * n, 1e-9)
              << p << " " << m << " " << n << " " << v;
        }
      }
    }
  }
}

TEST(Visits, StartTogetherAndEndTogether) {
  const Program program = sharded(generate("slimpipe", schedule::request(3, 2, 5)));
  const Simulation simulation = simulate(program, VocabularyCosts(5, 0.5, 0.5));
  std::vector<std::vector<schedule::Event>> visits;
  for (int d = 0; d < 3; ++d) {
    auto& mine = visits.emplace_back();
    for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
      if (program.devices[d].ops[i].kind == OpKind::VocabularyLoss)
        mine.push_back(simulation.timeline.devices[d][i]);
    }
  }
  ASSERT_EQ(visits[0].size(), 10u);
  for (std::size_t k = 0; k < visits[0].size(); ++k) {
    EXPECT_EQ(visits[0][k].start, visits[2][k].start);
    EXPECT_EQ(visits[0][k].end, visits[1][k].end);
    EXPECT_DOUBLE_EQ(visits[0][k].end - visits[0][k].start, 0.5);
  }
}

// The bubbles of an independent simulation for p 4, m 4, n 8: a barrier is costly where slices are unequal.
TEST(Visits, CostWhatUnequalSlicesMakeThem) {
  const auto schedule = generate("slimpipe", schedule::request(4, 4, 8));
  const VocabularyCosts costs(8, 0.5, 0);
  const Result alone = evaluate(schedule::lower(schedule, {.optimizer_step = false}), costs);
  EXPECT_NEAR(alone.bubble_fraction, 0.132, 5e-4);
  EXPECT_NEAR(evaluate(sharded(schedule), costs).bubble_fraction, 0.218, 5e-4);
}

// Visits `earlier` items before their place, as far as a device's own item f allows.
Program with_earlier_visits(const schedule::Schedule& schedule, int earlier) {
  const Program plain = schedule::compute_only(schedule);
  const int p = plain.device_count();
  std::vector<Op> visited;  // the last device's forwards, in order
  for (const Op& op : plain.devices.back().ops) {
    if (op.kind == OpKind::Forward) visited.push_back(op);
  }
  Program program{plain.name, plain.stages, plain.slices, {}};
  for (int r = 0; r < p; ++r) {
    schedule::DeviceProgram& row = program.devices.emplace_back();
    std::size_t forwards = 0, done = 0;
    std::size_t tail = 0;  // backwards since the last forward
    const auto visit = [&](std::size_t until) {
      for (; done < std::min(until, visited.size()); ++done) {
        Op op = visited[done];
        op.kind = OpKind::VocabularyLoss;
        row.append(op);
      }
    };
    for (const Op& op : plain.devices[r].ops) {
      if (is_backward(op.kind) && forwards == visited.size() && tail++ > 0) visit(done + 1);
      row.append(op);
      forwards += op.kind == OpKind::Forward;
      const int behind = std::max(0, p - 1 - r - earlier);
      if (op.kind == OpKind::Forward && static_cast<int>(forwards) > behind) visit(forwards - behind);
    }
  }
  return schedule::add_transfers(program, {});
}

TEST(Visits, AnyEarlierDeadlockOrOpenBubbles) {
  const auto schedule = generate("slimpipe", schedule::request(4, 4, 8));
  const VocabularyCosts costs(8, 0, 0);
  EXPECT_NEAR(evaluate(with_earlier_visits(schedule, 0), costs).bubble_fraction, 3.0 / 35, 1e-9);
  for (const int earlier : {1, 2, 3}) {
    const Result result = evaluate(with_earlier_visits(schedule, earlier), costs);
    EXPECT_TRUE(result.deadlock || result.bubble_fraction > 0.15) << earlier << " " << result.bubble_fraction;
    RecordProperty("bubble" + std::to_string(earlier), std::to_string(result.bubble_fraction));
  }
}

TEST(Visits, OfOneDeviceAloneAreADeadlock) {
  Program program = sharded(generate("slimpipe", schedule::request(2, 1, 2)));
  std::erase_if(program.devices[1].ops, [](const Op& op) { return op.kind == OpKind::VocabularyLoss; });
  for (Op& op : program.devices[1].ops) op.after_count = 0;
  EXPECT_TRUE(simulate(program, VocabularyCosts(2, 0, 0)).deadlock);
}

std::string deadlock_of(const std::string& lists) {
  const Program program =
      schedule::parse_program("penstock program 1\nname x\nstages 2\nslices 1\n" + lists, "x");
  const Simulation simulation = simulate(program, VocabularyCosts(1, 0, 0));
  return simulation.deadlock ? simulation.deadlock->text : "none";
}

TEST(Visits, DeadlocksNameTheVisitAndWhoHasNotCome) {
  EXPECT_EQ(deadlock_of("device 0\n0 1LOSS0\n1 0F0\n2 0SEND_F0 to 1 after 1\n"
                        "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1LOSS0\n"),
            "deadlock: device 0 waits at op 1, 0F0, for 1LOSS0; "
            "device 1 waits at op 1, 1F0, for 1RECV_F0 from device 0");
  EXPECT_EQ(deadlock_of("device 0\n0 1LOSS0\ndevice 1\n0 1F0\n"),
            "deadlock: device 0 waits at op 0, 1LOSS0; device 1 is done");
}

}  // namespace
}  // namespace penstock::sim
