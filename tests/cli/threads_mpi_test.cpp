// SPDX-License-Identifier: Apache-2.0
// The program leaves the same losses and weights, byte for byte, whether its ranks are threads or processes.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

Left run(const Scratch& scratch, const std::string& name, const Arguments& command) {
  const Ending ending = run_program(command);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_TRUE(ending.complaints().empty()) << ending.err;
  return left_in(scratch, name);
}

void expect_same_runs(int ranks, const std::string& schedule, int slices, const std::string& precision,
                      bool sharded = false, const std::string& exchange = "off") {
  SCOPED_TRACE(schedule + " " + std::to_string(ranks));
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto arguments = [&](const std::string& directory) {
    return Arguments{"train",
                     scratch / "run.toml",
                     "--parallel.pp",
                     std::to_string(ranks),
                     "--schedule.name",
                     schedule,
                     "--schedule.slices",
                     std::to_string(slices),
                     "--model.layers",
                     "8",
                     "--model.tied_embeddings",
                     "true",
                     "--train.precision",
                     precision,
                     "--schedule.vocabulary_parallel",
                     sharded ? "true" : "false",
                     "--schedule.exchange",
                     exchange,
                     "--train.evaluate_every",
                     "2",
                     "--output.dir",
                     scratch / directory};
  };
  const Left threads = run(scratch, "threads", with_threads(ranks, arguments("threads")));
  const Left processes = run(scratch, "mpi", with_mpirun(ranks, arguments("mpi")));
  EXPECT_EQ(threads.steps.size(), 5u);
  EXPECT_EQ(threads.steps, processes.steps);
  EXPECT_FALSE(threads.weights.empty());
  EXPECT_TRUE(threads.weights == processes.weights);
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithSlimpipe) {
  for (const int ranks : {2, 4}) {
    for (const char* precision : {"f32", "bf16"}) expect_same_runs(ranks, "slimpipe", 4, precision);
  }
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithAShardedVocabulary) {
  expect_same_runs(2, "slimpipe", 4, "bf16", true);
  expect_same_runs(4, "slimpipe", 4, "f32", true);
}

// Which device computes what is decided beforehand, and so is the order of all sums.
TEST(ThreadsAndMpi, LeaveTheSameBytesWithContextExchange) {
  expect_same_runs(2, "slimpipe", 8, "bf16", false, "paired");
  expect_same_runs(4, "slimpipe", 8, "f32", false, "levelled");
  expect_same_runs(4, "slimpipe", 8, "f32", true, "auto");
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithASplitBackward) { expect_same_runs(2, "zb-h1", 1, "bf16"); }

TEST(ThreadsAndMpi, LeaveTheSameBytesWithTwoChunksInAV) {
  for (const int ranks : {2, 4}) expect_same_runs(ranks, "zb-v", 1, "bf16");
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithInterleavedSlices) {
  expect_same_runs(2, "seq1f1b-interleaved", 4, "f32");
}

TEST(ThreadsAndMpi, LeaveWhatOneRankAloneLeaves) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto arguments = [&](int ranks, const std::string& directory) {
    return Arguments{"train",        scratch / "run.toml", "--parallel.pp", std::to_string(ranks),
                     "--output.dir", scratch / directory};
  };
  const Left alone = run(scratch, "alone", with_threads(1, arguments(1, "alone")));
  EXPECT_EQ(alone.steps, run(scratch, "mpi1", with_mpirun(1, arguments(1, "mpi1"))).steps);
  const Left two = run(scratch, "mpi2", with_mpirun(2, arguments(2, "mpi2")));
  EXPECT_EQ(alone.steps, two.steps);
  EXPECT_TRUE(alone.weights == two.weights);
}

}  // namespace
}  // namespace penstock::testing
