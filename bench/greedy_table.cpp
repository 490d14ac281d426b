// SPDX-License-Identifier: Apache-2.0
// Prints how greedy compares with the fixed patterns in the same memory, as a Markdown table for
// docs/schedules.md: idle part of the step over a grid of times, p and m, and where greedy's order comes
// from. A pattern that holds more than the limit shows a dash. Limits are those of 1F1B, twice that, and with
// two stages a device what v-min and v-half hold.
//
//   build/release/bin/greedy_table

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "base/text.h"
#include "schedule/generators/greedy.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

using schedule::Schedule;

struct Times {
  const char* name;
  Seconds forward, input, weight;
};

// Attention has no weights: from none of it to three quarters of a forward.
constexpr Times kTimes[] = {{"1 : 1 : 1", 1, 1, 1},
                            {"1 : 1.38 : 0.75", 1, 1.375, 0.75},
                            {"1 : 1.75 : 0.5", 1, 1.75, 0.5},
                            {"1 : 2.13 : 0.25", 1, 2.125, 0.25}};

struct Family {
  const char* title;
  int chunks;
  std::vector<const char*> patterns;
  std::vector<const char*> own_limits;  // patterns that hold less than 1F1B
};

std::string bubble(const Schedule& plan, const Times& times) {
  const UnitCosts costs({times.forward, times.input + times.weight, times.input, times.weight});
  return number(100 * evaluate(lower(plan), costs, {.imbalance = false, .memory = false}).bubble_fraction, 1);
}

int in_flight(const Schedule& plan) {
  int most = 0;
  for (const schedule::DeviceProgram& device : lower(plan).devices)
    most = std::max(most, count_in_flight(device).peak);
  return most;
}

void print_row(const Family& family, const Times& times, int p, int m, int limit) {
  const auto stages = static_cast<std::size_t>(p * family.chunks);
  const std::vector<Seconds> forward(stages, times.forward), input(stages, times.input),
      weight(stages, times.weight);
  schedule::Request request = schedule::request(p, m);
  std::string row = "| " + std::to_string(p) + " | " + std::to_string(m) + " | " + times.name + " | " +
                    std::to_string(limit) + " |";
  for (const char* pattern : family.patterns) {
    const Schedule plan = schedule::generate(pattern, request);
    row += " " + (in_flight(plan) <= limit ? bubble(plan, times) : std::string("-")) + " |";
  }
  request.chunks = family.chunks;
  request.costs = {.forward = forward, .input = input, .weight = weight, .limit = limit};
  const schedule::GreedySchedule made = make_greedy(request);
  std::printf("%s %s | %s |\n", row.c_str(), bubble(made.schedule, times).c_str(), made.origin().c_str());
}

// In stages' records of a micro-batch.
std::set<int> limits_of(const Family& family, int p, int m) {
  std::set<int> limits{p * family.chunks, 2 * p * family.chunks};
  for (const char* pattern : family.own_limits)
    limits.insert(in_flight(schedule::generate(pattern, schedule::request(p, m))));
  return limits;
}

void print_table(const Family& family) {
  std::string head = "| p | m | F : I : W | limit |", rule = "|---|---|---|---|";
  for (const char* pattern : family.patterns) {
    head += std::string(" ") + pattern + " |";
    rule += "---|";
  }
  std::printf("\n%s, idle %% of the step:\n\n%s greedy | its order from |\n%s---|---|\n", family.title,
              head.c_str(), rule.c_str());
  for (const int p : {4, 8}) {
    for (const int m : {p, 2 * p, 4 * p}) {
      const std::set<int> limits = limits_of(family, p, m);
      for (const Times& times : kTimes) {
        for (const int limit : limits) print_row(family, times, p, m, limit);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::sim

int main() {
  using namespace penstock::sim;
  print_table({"One stage a device", 1, {"1f1b", "zb-h1", "zb-h2"}, {}});
  print_table(
      {"Two stages a device in a V", 2, {"v-min", "v-half", "zb-v", "dualpipe-v"}, {"v-min", "v-half"}});
}
