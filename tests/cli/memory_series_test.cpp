// SPDX-License-Identifier: Apache-2.0
#include "cli/report/memory_series.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/report/run_report.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

Bytes greatest_sum(const report::MemorySeries& series) {
  Bytes greatest = 0;
  for (std::size_t i = 0; i < series.times.size(); ++i) {
    Bytes sum = 0;
    for (const auto& category : series.bytes) sum += category[i];
    greatest = std::max(greatest, sum);
  }
  return greatest;
}

// Also where the collectives of replicas have buffers for the whole step.
TEST(PredictedMemoryOverTime, HasThePeakOfTheTable) {
  const Scratch scratch;
  scratch.write("run.toml",
                "[model]\nlayers = 4\n[data]\nseq_len = 256\n[parallel]\npp = 2\n[schedule]\nslices = 4\n");
  for (const char* replicas : {"1", "2", "4"}) {
    SimulateFlags flags;
    flags.hardware = "assumed";
    flags.schedule.file = scratch / "run.toml";
    flags.memory_samples = true;
    const Simulated simulated = simulate_source(flags, {std::string("--parallel.dp=") + replicas});
    const report::Track track = run_of(simulated).predicted.value();
    ASSERT_EQ(track.memory.size(), 2u);
    for (std::size_t device = 0; device < 2; ++device)
      EXPECT_EQ(greatest_sum(track.memory[device]), simulated.predicted[device].total()) << replicas;
  }
}

// A device that waits for its first action holds what the step before left.
TEST(MeasuredMemoryOverTime, BeginsWithTheStep) {
  schedule::Program program;
  program.devices.emplace_back().append({.kind = schedule::OpKind::Forward});
  MeasuredStep step;
  step.result.timeline.devices = {{schedule::Event{.start = 2, .end = 3}}};
  run::OpMemory memory{.peak = 30};
  memory.live[static_cast<std::size_t>(model::Category::Weights)] = 20;
  step.memory = {{memory}};
  const report::MemorySeries series = measured_memory(program, step).at(0);
  EXPECT_EQ(series.times, (std::vector<Seconds>{0, 2, 3}));
  EXPECT_EQ(series.bytes[static_cast<std::size_t>(model::Category::Weights)],
            (std::vector<Bytes>{20, 20, 20}));
}

}  // namespace
}  // namespace penstock::cli
