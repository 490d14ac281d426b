// SPDX-License-Identifier: Apache-2.0
#include "sim/print.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/costs/unit.h"

namespace penstock::sim {
namespace {

schedule::Program two_devices() { return lower(schedule::generate("1f1b", schedule::request(2, 2))); }

TEST(PrintResult, JsonLooksLikeThis) {
  EXPECT_EQ(
      to_json(evaluate(two_devices(), UnitCosts({}, {.record = 64}))),
      R"({"schedule":"1f1b","makespan_s":9,"bubble_fraction":0.3333333333333333,)"
      R"("span_bubble_fraction":0.16666666666666666,"devices":[)"
      R"({"busy_s":6,"idle_s":3,"idle_by_cause_s":{"ramp":0,"transfer":0,"copy":0,"imbalance":0,"dependency":3},)"
      R"("peak_in_flight":2,"peak_in_flight_until_input":2,"peak_bytes":128,"peak_bytes_by_category":)"
      R"({"records":128,"weight_records":0,"kv_gradients":0,"queues":0,"buffers":0,"logits":0,"transient":0,)"
      R"("weights":0,"gradients":0}},)"
      R"({"busy_s":6,"idle_s":3,"idle_by_cause_s":{"ramp":3,"transfer":0,"copy":0,"imbalance":0,"dependency":0},)"
      R"("peak_in_flight":1,"peak_in_flight_until_input":1,"peak_bytes":64,"peak_bytes_by_category":)"
      R"({"records":64,"weight_records":0,"kv_gradients":0,"queues":0,"buffers":0,"logits":0,"transient":0,)"
      R"("weights":0,"gradients":0}}]})"
      "\n");
}

TEST(PrintResult, JsonHoldsBytesOverTimeWhenAskedFor) {
  const std::string json =
      to_json(evaluate(two_devices(), UnitCosts({}, {.record = 64}), {.memory_samples = true}));
  EXPECT_NE(json.find(R"("memory":[[0,64,0,0,0,0,0,0,0,0],[1,128,0,0,0,0,0,0,0,0],)"), std::string::npos)
      << json;
}

TEST(PrintResult, TheTableLooksLikeThis) {
  EXPECT_EQ(to_table(evaluate(two_devices(), UnitCosts({}, {.record = 64}))),
            "1f1b: 9.00 s, bubble 33.3 % of the step, 16.7 % of the devices' spans\n"
            "device    busy    idle    ramp  transfer  copy  imbalance  dependency  in flight  peak saved\n"
            "     0  6.00 s  3.00 s     0 s       0 s   0 s        0 s      3.00 s          2       128 B\n"
            "     1  6.00 s  3.00 s  3.00 s       0 s   0 s        0 s         0 s          1        64 B\n");
}

TEST(PrintResult, WaitsThatAreRoundingShowAsNone) {
  const schedule::Program program = lower(schedule::generate("1f1b", schedule::request(4, 8)));
  const std::string table =
      to_table(evaluate(program, UnitCosts({.forward = 0.1, .backward = 0.3, .transfer = 0.7})));
  EXPECT_EQ(table.find("0.00 us"), std::string::npos) << table;
}

TEST(PrintResult, ADeadlockIsItsSentence) {
  const schedule::Program program = schedule::parse_program(
      "penstock program 1\nname x\nstages 2\nslices 1\ndevice 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n1 1F0 "
      "after 0\n",
      "x");
  const Result result = evaluate(program, UnitCosts());
  EXPECT_EQ(to_table(result).rfind("x: deadlock: device 1 waits", 0), 0u);
  EXPECT_NE(to_json(result).find(R"("stalls":[{"device":1,"op":1,"waits_for":0}])"), std::string::npos);
}

TEST(PrintResult, AComparisonShowsBothRowsOfEachDevice) {
  const Result measured = evaluate(two_devices(), UnitCosts({.transfer = 0.5}));
  const std::string text = to_comparison(measured, evaluate(two_devices(), UnitCosts()));
  EXPECT_NE(text.find("difference of the makespan: -10.0 %"), std::string::npos) << text;
  for (const char* row : {"0 measured", "0 simulated", "1 measured", "1 simulated"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace penstock::sim
