// SPDX-License-Identifier: Apache-2.0
// Closed forms against generated schedules: records counted by walking each row, idle time in unit times.
#include "plan/in_flight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/memory/terms.h"
#include "schedule/exchange/plan.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/passes/lower.h"
#include "schedule/unit_times.h"
#include "sim/costs/unit.h"
#include "sim/simulate.h"

namespace penstock::plan {
namespace {

struct Peaks {
  int until_input = 0;
  int weights = 0;       // weight records, from I until W
  int until_weight = 0;  // both
};

Peaks count(const std::vector<schedule::Action>& row) {
  int records = 0, weights = 0;
  Peaks peaks;
  for (const schedule::Action& action : row) {
    if (action.kind == schedule::Kind::Forward) ++records;
    if (schedule::is_backward(action.kind)) --records;
    if (action.kind == schedule::Kind::BackwardInput) ++weights;
    if (action.kind == schedule::Kind::BackwardWeight) --weights;
    peaks.until_input = std::max(peaks.until_input, records);
    peaks.weights = std::max(peaks.weights, weights);
    peaks.until_weight = std::max(peaks.until_weight, records + weights);
  }
  return peaks;
}

bool is_exact(ScheduleKind kind, const PipelineShape& shape) {
  if (kind == ScheduleKind::Interleaved) return shape.micro_batches % shape.devices == 0;
  return !splits_backward(kind);
}

schedule::Schedule generated_of(ScheduleKind kind, const PipelineShape& shape) {
  schedule::Request request =
      schedule::request(shape.devices, shape.micro_batches, shape.slices, shape.chunks);
  request.group = shape.group;
  return schedule::generate(name_of(kind), request);
}

std::string words_of(ScheduleKind kind, const PipelineShape& shape) {
  return std::string(name_of(kind)) + " p" + std::to_string(shape.devices) + " m" +
         std::to_string(shape.micro_batches) + " n" + std::to_string(shape.slices) + " v" +
         std::to_string(shape.chunks) + " g" + std::to_string(shape.group);
}

void check(ScheduleKind kind, const PipelineShape& shape) {
  const auto generated = generated_of(kind, shape);
  const std::string of_shape = words_of(kind, shape);
  for (int rank = 0; rank < shape.devices; ++rank) {
    const Peaks peaks = count(generated.devices[rank]);
    const std::string where = of_shape + " device " + std::to_string(rank);
    if (is_exact(kind, shape)) {
      EXPECT_EQ(records_in_flight(kind, shape, rank), peaks.until_input) << where;
    } else {
      EXPECT_GE(records_in_flight(kind, shape, rank), peaks.until_input) << where;
      EXPECT_GE(weight_records_in_flight(kind, shape, rank), peaks.weights) << where;
    }
    const HeldRecords held = held_at_peak(kind, shape, rank);
    EXPECT_GE(held.records + held.weight_records, peaks.until_weight) << where;
  }
  EXPECT_NEAR(3 * ramp_slots(kind, shape), schedule::unit_times(generated).step_idle(),
              is_rough(kind) ? 6 : 1e-9)
      << of_shape;
}

TEST(InFlight, ClosedFormsAreThoseOfTheGeneratedSchedules) {
  int checked = 0;
  for (const ScheduleKind kind : all_schedules()) {
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 2, 3, 8, 16}) {
        for (const int n : {1, 2, 4, 8}) {
          for (const int v : {1, 2, 3}) {
            PipelineShape shape{p, m, n, v};
            if (!takes(kind, shape)) continue;
            for (const int group : groups_to_try(kind, shape)) {
              shape.group = group;
              check(kind, shape);
            }
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 600);
}

// As at long context, whose attention has no weights.
TEST(InFlight, IdleTimeCountsThatWeightGradientsTakeLess) {
  for (const ScheduleKind kind : all_schedules()) {
    if (!splits_backward(kind)) continue;
    const int v = is_v_shaped(kind) ? 2 : 1;
    for (const auto& [input, weight] : {std::pair(1.2, 0.8), std::pair(1.6, 0.6), std::pair(2.3, 0.2)}) {
      const double slot = 1 + input + weight;
      for (const int p : {2, 3, 4, 7, 8, 16}) {
        for (const int m : {1, p, 2 * p, 6 * p}) {
          schedule::Request request = schedule::request(p, m, 1, v);
          request.costs = {.forward = {1}, .input = {input}, .weight = {weight}};
          const sim::UnitCosts costs({.backward = input + weight, .input = input, .weight = weight});
          const Seconds step =
              sim::simulate(schedule::lower(schedule::generate(name_of(kind), request)), costs)
                  .timeline.makespan();
          const double idle = ramp_slots(kind, {p, m, 1, v}, {1 / slot, input / slot, weight / slot});
          EXPECT_NEAR((idle + m * v) * slot / step, 1, is_rough(kind) ? 0.13 : 0.02)
              << name_of(kind) << " p" << p << " m" << m << " I " << input;
        }
      }
    }
  }
}

// K,V gradients at once on a device: a chunk's first backward of a micro-batch makes its other slices'.
int most_gradients(const std::vector<schedule::Action>& row, int slices) {
  int gradients = 0, most = 0;
  for (const schedule::Action& action : row) {
    if (!schedule::is_backward(action.kind)) continue;
    gradients += action.key.slice + 1 == slices ? slices - 1 : -1;
    most = std::max(most, gradients);
  }
  return most;
}

// Inputs of device 0 that wait at once where devices keep step: what it passes on is back p forwards later.
int most_waiting(const std::vector<schedule::Action>& row, int devices) {
  std::vector<schedule::Key> forwards;
  for (const schedule::Action& action : row) {
    if (action.kind == schedule::Kind::Forward) forwards.push_back(action.key);
  }
  int most = 0;
  for (auto now = forwards.begin(); now != forwards.end(); ++now) {
    int waiting = 0;
    for (auto later = now + 1; later != forwards.end(); ++later) {
      if (later->stage < devices) continue;
      const schedule::Key passed_on = later->at_stage(later->stage - devices);
      waiting += now - std::ranges::find(forwards, passed_on) >= devices;
    }
    most = std::max(most, waiting);
  }
  return most;
}

void check_turns(ScheduleKind kind, const PipelineShape& shape) {
  const auto& [p, m, n, v, group] = shape;
  const std::vector<schedule::Action> row = generated_of(kind, shape).devices[0];
  const int turn = slices_of_turn(kind, shape);
  EXPECT_EQ(most_waiting(row, p), std::max(0, turn - p)) << words_of(kind, shape);
  const double gradients = model::kv_gradient_slices(n, v, std::min(n, turn));
  EXPECT_EQ(most_gradients(row, n), std::max(0.0, gradients - 1)) << words_of(kind, shape);
}

TEST(InFlight, GroupsToTryAreTheAutomaticOneAndItsDoubles) {
  EXPECT_EQ(groups_to_try(ScheduleKind::SlimPipe, {8, 1, 64, 5}), (std::vector{0, 16, 32, 64}));
  EXPECT_EQ(groups_to_try(ScheduleKind::SlimPipe, {4, 1, 10, 2}), (std::vector{0, 10}));
  EXPECT_EQ(groups_to_try(ScheduleKind::SlimPipe, {8, 1, 8, 5}), std::vector{0});
  EXPECT_EQ(groups_to_try(ScheduleKind::SlimPipe, {8, 1, 64, 1}), std::vector{0});
  EXPECT_EQ(groups_to_try(ScheduleKind::SeqInterleaved, {8, 1, 64, 5}), std::vector{0});
}

TEST(InFlight, TurnsOfChunksAreThoseOfTheGeneratedSchedules) {
  int checked = 0;
  for (const ScheduleKind kind : {ScheduleKind::SlimPipe, ScheduleKind::Interleaved,
                                  ScheduleKind::SeqInterleaved, ScheduleKind::BreadthFirst}) {
    for (const int p : {2, 3, 4}) {
      for (const int m : {1, 2, 4, 6}) {
        for (const int n : {1, 2, 3, 8}) {
          for (const int v : {2, 3}) {
            PipelineShape shape{p, m, n, v};
            if (!takes(kind, shape)) continue;
            ++checked;
            for (const int group : groups_to_try(kind, shape)) {
              shape.group = group;
              check_turns(kind, shape);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 100);
  EXPECT_EQ(slices_of_turn(ScheduleKind::SeqInterleaved, {4, 2, 16, 2}), 16);
}

TEST(InFlight, ScheduleNamesAreThoseOfTheGenerators) {
  for (const ScheduleKind kind : all_schedules()) {
    EXPECT_EQ(schedule::find_generator(name_of(kind)).name, name_of(kind));
    EXPECT_EQ(parse_schedule(name_of(kind)), kind);
  }
  EXPECT_THROW(parse_schedule("slimpip"), InputError);
}

// Of the forwards, as the backwards are like them.
double slots_with_exchange(const PipelineShape& shape, schedule::ExchangeMode exchange) {
  const schedule::Program program = schedule::compute_only(generated_of(ScheduleKind::SlimPipe, shape));
  const auto plan = plan_exchange(program, *schedule::find_slot_grid(program), exchange, /*limit=*/1000);
  std::set<int> slots;
  for (const schedule::PlannedExchange& part : plan.exchanges) {
    if (!part.backward) slots.insert(part.slot);
  }
  return static_cast<double>(slots.size()) / (shape.micro_batches * shape.slices * shape.chunks);
}

TEST(ExchangeShare, IsThatOfTheGeneratedSlots) {
  for (const int p : {2, 4, 8})
    for (const int m : {1, 3, 12})
      for (const int n : {2, 8, 16, 32})
        for (const int v : {1, 2}) {
          const PipelineShape shape{p, m, n, v};
          if (!takes(ScheduleKind::SlimPipe, shape)) continue;
          const std::string of_shape = words_of(ScheduleKind::SlimPipe, shape);
          EXPECT_NEAR(exchange_share(shape, /*whole_slices=*/true),
                      slots_with_exchange(shape, schedule::ExchangeMode::Paired), 1e-9)
              << of_shape;
          EXPECT_NEAR(exchange_share(shape, /*whole_slices=*/false),
                      slots_with_exchange(shape, schedule::ExchangeMode::Levelled), 1e-9)
              << of_shape;
        }
}

}  // namespace
}  // namespace penstock::plan
