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

}  // namespace
}  // namespace penstock::cli
