// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/example_reports.h"
#include "report/json_reader.h"

namespace penstock::report {
namespace {

struct Trace {
  explicit Trace(const std::string& text) : all(read_json(text)["traceEvents"]) {}

  std::vector<const Json*> of(const std::string& phase) const {
    std::vector<const Json*> found;
    for (const Json& event : all.list) {
      if (event["ph"].text == phase) found.push_back(&event);
    }
    return found;
  }
  // The name of the event that is under way at the place and time of another one; as Perfetto binds flows.
  std::string under_way(const Json& at) const {
    std::string name;
    for (const Json* e : of("X")) {
      const bool here = (*e)["pid"].number == at["pid"].number && (*e)["tid"].number == at["tid"].number;
      const double start = (*e)["ts"].number, end = start + (*e)["dur"].number, time = at["ts"].number;
      if (here && start <= time && (time < end || start == end)) name = (*e)["name"].text;
    }
    return name;
  }

  Json all;
};

using Place = std::pair<double, double>;  // process, thread
Place place(const Json& event) { return {event["pid"].number, event["tid"].number}; }

class Traces : public testing::TestWithParam<std::tuple<const char*, int, int, int>> {
 protected:
  schedule::Program program() const {
    const auto [name, p, m, n] = GetParam();
    return example_program(name, p, m, n);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Traces,
                         testing::Values(std::tuple{"slimpipe", 4, 2, 4}, std::tuple{"1f1b", 3, 5, 1},
                                         std::tuple{"gpipe", 2, 1, 1}, std::tuple{"slimpipe", 1, 2, 3}));

TEST_P(Traces, HoldEveryOpOnceWithItsTimes) {
  const auto program = this->program();
  const auto timeline = PaperClock(program, example_seconds(0.3)).run();
  const Trace trace(chrome_trace(TraceProcess{"", program, timeline}));
  std::size_t ops = 0;
  double latest = 0;
  for (const auto& device : program.devices) ops += device.ops.size();
  for (const Json* event : trace.of("X"))
    latest = std::max(latest, (*event)["ts"].number + (*event)["dur"].number);
  EXPECT_EQ(trace.of("X").size(), ops);
  EXPECT_NEAR(latest * 1e-6, timeline.makespan(), 1e-8);
}

TEST_P(Traces, KeepTheEventsOfAThreadApart) {
  const auto program = this->program();
  const auto timeline = PaperClock(program, example_seconds(0.3)).run();
  const Trace trace(chrome_trace(TraceProcess{"", program, timeline}));
  std::map<Place, std::vector<std::pair<std::int64_t, std::int64_t>>> threads;  // nanoseconds
  for (const Json* event : trace.of("X")) {
    const auto start = std::llround((*event)["ts"].number * 1000),
               length = std::llround((*event)["dur"].number * 1000);
    threads[place(*event)].push_back({start, start + length});
  }
  for (auto& [where, spans] : threads) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second);
  }
}

TEST_P(Traces, LeadAFlowFromEverySendToItsReceive) {
  const auto program = this->program();
  const auto timeline = PaperClock(program, example_seconds(0.3)).run();
  const Trace trace(chrome_trace(TraceProcess{"", program, timeline}));
  std::map<double, const Json*> ends;
  for (const Json* event : trace.of("f")) ends[(*event)["id"].number] = event;
  EXPECT_EQ(trace.of("s").size(), schedule::deliveries_of(program).size());
  ASSERT_EQ(ends.size(), trace.of("s").size());
  for (const Json* begin : trace.of("s")) {
    const Json& end = *ends.at((*begin)["id"].number);
    const std::string from = trace.under_way(*begin), to = trace.under_way(end);
    EXPECT_LE((*begin)["ts"].number, end["ts"].number);
    EXPECT_NE(from.find("SEND_"), from.npos) << from;
    EXPECT_NE(to.find("RECV_"), to.npos) << to;
    EXPECT_EQ(from.substr(from.find('_')), to.substr(to.find('_')));  // "_F1.2": what is sent is received
  }
}

TEST_P(Traces, NameEveryProcessAndThreadThatHasEvents) {
  const auto program = this->program();
  const auto timeline = PaperClock(program, example_seconds()).run();
  const Trace trace(chrome_trace(TraceProcess{"predicted ", program, timeline}));
  std::set<Place> named;
  std::set<std::string> processes;
  for (const Json* event : trace.of("M")) {
    if ((*event)["name"].text == "thread_name") named.insert(place(*event));
    if ((*event)["name"].text == "process_name") processes.insert((*event)["args"]["name"].text);
  }
  for (const Json* event : trace.of("X")) EXPECT_TRUE(named.contains(place(*event)));
  EXPECT_EQ(processes.size(), program.devices.size());
  EXPECT_TRUE(processes.contains("predicted device 0"));
}

TEST(Trace, ShowsMemoryAsACounterWithOneSeriesPerCategory) {
  const auto program = example_program("slimpipe", 2, 1, 2);
  const auto timeline = PaperClock(program, example_seconds()).run();
  const auto memory = example_memory(program, timeline);
  const Trace trace(chrome_trace(TraceProcess{"", program, timeline, memory}));
  ASSERT_EQ(trace.of("C").size(), memory[0].times.size() + memory[1].times.size());
  const Json& second = *trace.of("C")[1];
  EXPECT_EQ(second["args"]["weights"].number, 600 * MiB);
  EXPECT_EQ(second["args"]["activations"].number, 96 * MiB);
  EXPECT_NEAR(second["ts"].number, memory[0].times[1] * 1e6, 1e-3);
}

TEST(Trace, ShowsKernelsOnAThreadOfTheirOwn) {
  const auto program = example_program("gpipe", 2, 1, 1);
  const auto timeline = PaperClock(program, example_seconds()).run();
  const std::vector<std::vector<KernelSpan>> kernels{{{"product", "attention", 0.25, 0.5}}, {}};
  const Trace trace(chrome_trace(TraceProcess{"", program, timeline, {}, kernels}));
  std::vector<const Json*> found;
  std::set<Place> others;
  for (const Json* event : trace.of("X")) {
    if ((*event)["cat"].text == "kernel") found.push_back(event);
    if ((*event)["cat"].text != "kernel") others.insert(place(*event));
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ((*found[0])["name"].text, "product");
  EXPECT_EQ((*found[0])["args"]["block"].text, "attention");
  EXPECT_EQ((*found[0])["ts"].number, 0.25e6);
  EXPECT_EQ((*found[0])["dur"].number, 0.25e6);
  EXPECT_FALSE(others.contains(place(*found[0])));
}

TEST(Trace, OfAReportHoldsAllTimelinesAsProcessesOfTheirOwn) {
  const Report report{"both",
                      {example_run("a", example_program("gpipe", 2, 2, 1), 2),
                       example_run("b", example_program("1f1b", 2, 2, 1), 0)}};
  const Trace trace(chrome_trace(report));
  std::set<std::string> processes;
  for (const Json* event : trace.of("M")) {
    if ((*event)["name"].text == "process_name") processes.insert((*event)["args"]["name"].text);
  }
  EXPECT_EQ(processes.size(), 8u);
  EXPECT_TRUE(processes.contains("a step 20 device 1"));
  EXPECT_TRUE(processes.contains("b predicted device 0"));
}

TEST(Trace, QuotesTextsFromOutside) {
  Report report{"", {example_run("a\"b\\c\n<x>", example_program("gpipe", 1, 1, 1), 0)}};
  report.runs.push_back(report.runs[0]);
  const Trace trace(chrome_trace(report));
  EXPECT_EQ((*trace.of("M")[2])["args"]["name"].text.substr(0, 10), "a\"b\\c\n<x> ");
}

}  // namespace
}  // namespace penstock::report
