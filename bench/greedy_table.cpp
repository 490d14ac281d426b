// SPDX-License-Identifier: Apache-2.0
// Prints how greedy compares with the fixed patterns in the same memory, as a Markdown table for
// docs/schedules.md: idle part of the step over a grid of times, p and m. A pattern that holds more than the
// limit shows a dash.
//
//   build/release/bin/greedy_table

#include <cstdio>
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
  schedule::Placing placing;
  int chunks;
  std::vector<const char*> patterns;
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
  const schedule::Request request = schedule::request(p, m);
  std::string row = "| " + std::to_string(p) + " | " + std::to_string(m) + " | " + times.name + " | " +
                    std::to_string(limit) + " |";
  for (const char* pattern : family.patterns) {
    const Schedule plan = schedule::generate(pattern, request);
    row += " " + (in_flight(plan) <= limit ? bubble(plan, times) : std::string("-")) + " |";
  }
  const Schedule plan = greedy(request, {family.placing, forward, input, weight, 0, {}, limit});
  std::printf("%s %s |\n", row.c_str(), bubble(plan, times).c_str());
}

void print_table(const Family& family) {
  std::string head = "| p | m | F : I : W | limit |", rule = "|---|---|---|---|";
  for (const char* pattern : family.patterns) {
    head += std::string(" ") + pattern + " |";
    rule += "---|";
  }
  std::printf("\n%s, idle %% of the step:\n\n%s greedy |\n%s---|\n", family.title, head.c_str(),
              rule.c_str());
  for (const int p : {4, 8}) {
    for (const int m : {p, 2 * p, 4 * p}) {
      for (const Times& times : kTimes) {
        for (const int limit : {p * family.chunks, 2 * p * family.chunks})
          print_row(family, times, p, m, limit);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::sim

int main() {
  using namespace penstock::sim;
  using penstock::schedule::Placing;
  print_table({"One stage a device", Placing::Even, 1, {"1f1b", "zb-h1", "zb-h2"}});
  print_table({"Two stages a device in a V", Placing::V, 2, {"v-min", "v-half", "zb-v", "dualpipe-v"}});
}
