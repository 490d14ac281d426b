// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/all_ranks.h"

#include <gtest/gtest.h>

#include <set>

#include "report/example_reports.h"
#include "report/html.h"
#include "report/json_reader.h"
#include "report/trace.h"

namespace penstock::report {
namespace {

constexpr mesh::Mesh kMesh{.tensor = 2, .data = 3, .pipeline = 4};

TEST(AllRanks, HaveTheOpsOfTheirDevicesAndSendWithinTheirPipelines) {
  const auto program = example_program("slimpipe", 4, 2, 4);
  const auto all = program_of_ranks(program, kMesh);
  ASSERT_EQ(all.device_count(), kMesh.world());
  for (std::int64_t rank = 0; rank < kMesh.world(); ++rank) {
    const schedule::DeviceProgram& own = all.devices[rank];
    const schedule::DeviceProgram& device = program.devices[kMesh.coordinates_of(rank).pipeline];
    ASSERT_EQ(own.ops.size(), device.ops.size());
    EXPECT_EQ(own.after, device.after);
    for (std::size_t i = 0; i < own.ops.size(); ++i) {
      EXPECT_EQ(own.ops[i].kind, device.ops[i].kind);
      EXPECT_EQ(own.ops[i].key, device.ops[i].key);
    }
  }
  const auto messages = schedule::deliveries_of(all);
  EXPECT_EQ(messages.size(), 6 * schedule::deliveries_of(program).size());
  for (const schedule::Delivery& message : messages) {
    auto from = kMesh.coordinates_of(message.source);
    const auto to = kMesh.coordinates_of(message.destination);
    EXPECT_NE(from.pipeline, to.pipeline);
    from.pipeline = to.pipeline;
    EXPECT_EQ(from, to);
  }
}

Report report_of_ranks() {
  const auto program = example_program("1f1b", 4, 4, 1);
  const auto all = program_of_ranks(program, kMesh);
  const Track step{.label = "step 3", .timeline = PaperClock(all, example_seconds(0.3)).run()};
  return {.title = "ranks", .runs = {run_of_ranks("some run", program, kMesh, {step})}};
}

TEST(AllRanks, AreNamedAndMarkedByTheirGroups) {
  const Report report = report_of_ranks();
  const report::Run& run = report.runs.front();
  EXPECT_EQ(run.rows.front(), "rank 0: t0 d0 p0");
  EXPECT_EQ(run.rows[9], "rank 9: t1 d1 p1");
  ASSERT_EQ(run.groups.size(), 3);
  const mesh::Group kinds[] = {mesh::Group::Tensor, mesh::Group::Replica, mesh::Group::Pipeline};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(run.groups[k].name, mesh::name_of(kinds[k]));
    for (std::int64_t rank = 0; rank < kMesh.world(); ++rank) {
      std::set<std::int64_t> same;
      for (std::int64_t other = 0; other < kMesh.world(); ++other) {
        if (run.groups[k].group_of[other] == run.groups[k].group_of[rank]) same.insert(other);
      }
      const auto members = mesh::members(kMesh, kinds[k], rank);
      EXPECT_EQ(same, std::set(members.begin(), members.end()));
    }
  }
}

TEST(AllRanks, OfOneAxisAloneHaveNoMarks) {
  const mesh::Mesh mesh{.tensor = 2};
  const auto program = example_program("1f1b", 1, 2, 1);
  EXPECT_TRUE(run_of_ranks("one", program, mesh, {}).groups.empty());
}

TEST(AllRanks, AreRowsOfThePageAndProcessesOfTheTrace) {
  const Report report = report_of_ranks();
  const std::string page = html_page(report);
  EXPECT_NE(page.find("\"rows\":[\"rank 0: t0 d0 p0\",\"rank 1: t1 d0 p0\""), std::string::npos);
  EXPECT_NE(page.find("{\"name\":\"tensor\",\"of\":[0,0,1,1,2,2,"), std::string::npos);
  const Json trace = read_json(chrome_trace(report));
  std::set<std::string> processes;
  for (const Json& event : trace["traceEvents"].list) {
    if (event["name"].text == "process_name") processes.insert(event["args"]["name"].text);
  }
  EXPECT_EQ(processes.size(), 24);
  EXPECT_TRUE(processes.contains("step 3 rank 23: t1 d2 p3"));
}

}  // namespace
}  // namespace penstock::report
