// SPDX-License-Identifier: Apache-2.0
// The program leaves the same losses and weights, byte for byte, whether its ranks are threads or processes.
#include <gtest/gtest.h>

#include "base/random.h"
#include "cli/run_program.h"
#include "files/megatron_files.h"

namespace penstock::testing {
namespace {

Left left_by_command(const Scratch& scratch, const std::string& name, const Arguments& command) {
  const Ending ending = run_program(command);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_TRUE(ending.complaints().empty()) << ending.err;
  return left_in(scratch, name);
}

struct Case {
  int devices = 2;
  std::string schedule = "slimpipe";
  int slices = 1;
  std::string precision = "f32";
  bool sharded = false;
  std::string exchange = "off";
  int chunks = 0;  // 0: the schedule's own
  int layers = 8;
  int steps = 5;
  int shards = 1;  // of tensor parallelism
  int tensor = 1;  // ranks that carry them
  int context = 1;
  std::string mode = "auto";  // which goes by measured speeds, of threads and of processes
  int replicas = 1;
  int experts = 1;         // of each layer, two for a token
  int expert = 1;          // ranks that share them out
  bool documents = false;  // that share sequences, instead of a text

  int ranks() const { return devices * tensor * context * replicas; }
};

Arguments arguments_of(const Case& run, const Scratch& scratch, const std::string& directory) {
  Arguments arguments{"train",
                      scratch / "run.toml",
                      "--parallel.pp",
                      std::to_string(run.devices),
                      "--parallel.tp",
                      std::to_string(run.tensor),
                      "--numerics.tensor",
                      std::to_string(run.shards),
                      "--parallel.cp",
                      std::to_string(run.context),
                      "--parallel.cp_mode",
                      run.mode,
                      "--parallel.dp",
                      std::to_string(run.replicas),
                      "--schedule.name",
                      run.schedule,
                      "--schedule.slices",
                      std::to_string(run.slices),
                      "--model.layers",
                      std::to_string(run.layers),
                      "--model.tied_embeddings",
                      "true",
                      "--train.precision",
                      run.precision,
                      "--schedule.vocabulary_parallel",
                      run.sharded ? "true" : "false",
                      "--schedule.exchange",
                      run.exchange,
                      "--train.steps",
                      std::to_string(run.steps),
                      "--train.evaluate_every",
                      "2",
                      "--output.dir",
                      scratch / directory};
  if (run.experts > 1) {
    arguments.insert(arguments.end(),
                     {"--model.experts", std::to_string(run.experts), "--model.experts_per_token", "2",
                      "--model.head_norms", "true", "--moe.balance_coefficient", "0.1", "--parallel.ep",
                      std::to_string(run.expert)});
  }
  if (run.documents) {
    arguments.insert(arguments.end(), {"--data.text", "", "--data.megatron", scratch / "documents",
                                       "--model.vocab", "259", "--data.validation_fraction", "0.2"});
  }
  if (run.context > 1) arguments.insert(arguments.end(), {"--data.seq_len", "32"});  // pieces of whole tokens
  if (run.chunks > 0) arguments.insert(arguments.end(), {"--schedule.chunks", std::to_string(run.chunks)});
  return arguments;
}

// A pair of documents of one to forty tokens, of some only every third a target.
void write_documents(const Scratch& scratch) {
  std::vector<std::int32_t> lengths;
  std::vector<std::uint16_t> tokens;
  std::string mask;
  for (std::uint64_t i = 0; i < 300; ++i) {
    lengths.push_back(static_cast<std::int32_t>(1 + random_bits(1, i) % 40));
    for (std::int32_t token = 0; token < lengths.back(); ++token) {
      tokens.push_back(static_cast<std::uint16_t>(random_bits(2, tokens.size()) % 259));
      mask += static_cast<char>(i % 2 == 0 || token % 3 == 0);
    }
  }
  scratch.write("documents.bin", bin_of(tokens));
  scratch.write("documents.idx", idx_of(lengths).bytes());
  scratch.write("documents.mask", mask);
}

// How often a device computed for another in the last step.
int times_served(const Scratch& scratch, const std::string& directory) {
  const auto timeline = nlohmann::json::parse(scratch.read(directory + "/timeline.json"));
  int served = 0;
  for (const auto& device : timeline["steps"].back()["exchange"]) {
    for (const auto& span : device) served += span[3] == 0;  // the others are waits for a reply
  }
  return served;
}

// The timeline and the report have every rank where several are one device.
void expect_rows(const Case& asked, const Scratch& scratch) {
  const bool several = asked.ranks() > asked.devices;
  for (const char* directory : {"threads", "mpi"}) {
    const std::string in = directory;
    const auto step = nlohmann::json::parse(scratch.read(in + "/timeline.json"))["steps"].back();
    EXPECT_EQ(step.value("ranks", nlohmann::json::array()).size(), several ? asked.ranks() : 0);
    const bool named = scratch.read(in + "/report.html").find(in + ", every rank\"") != std::string::npos;
    EXPECT_EQ(named, several);
  }
}

void expect_same_runs(const Case& asked) {
  SCOPED_TRACE(asked.schedule + " " + std::to_string(asked.ranks()));
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  if (asked.documents) write_documents(scratch);
  const Left threads = left_by_command(scratch, "threads",
                                       with_threads(asked.ranks(), arguments_of(asked, scratch, "threads")));
  const Left processes =
      left_by_command(scratch, "mpi", with_mpirun(asked.ranks(), arguments_of(asked, scratch, "mpi")));
  EXPECT_EQ(threads.steps.size(), static_cast<std::size_t>(asked.steps));
  EXPECT_EQ(threads.steps, processes.steps);
  EXPECT_FALSE(threads.weights.empty());
  EXPECT_TRUE(threads.weights == processes.weights);
  expect_rows(asked, scratch);
  if (asked.exchange == "off") return;
  EXPECT_GT(times_served(scratch, "mpi"), 0);
  EXPECT_EQ(times_served(scratch, "mpi"), times_served(scratch, "threads"));
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithSlimpipe) {
  for (const int ranks : {2, 4}) {
    for (const char* precision : {"f32", "bf16"})
      expect_same_runs({.devices = ranks, .slices = 4, .precision = precision});
  }
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithAShardedVocabulary) {
  expect_same_runs({.devices = 2, .slices = 4, .precision = "bf16", .sharded = true});
  expect_same_runs({.devices = 4, .slices = 4, .sharded = true});
}

// Which device computes what is decided beforehand, and so is the order of all sums.
TEST(ThreadsAndMpi, LeaveTheSameBytesWithContextExchange) {
  expect_same_runs({.devices = 2, .slices = 8, .precision = "bf16", .exchange = "paired"});
  expect_same_runs({.devices = 4, .slices = 8, .sharded = true, .exchange = "levelled"});
  expect_same_runs({.devices = 3, .slices = 8, .exchange = "levelled", .layers = 6});
  expect_same_runs({.devices = 2, .slices = 6, .exchange = "levelled", .chunks = 2});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithTensorParallelRanks) {
  Case asked{
      .devices = 1, .slices = 4, .precision = "bf16", .layers = 4, .steps = 3, .shards = 4, .tensor = 2};
  expect_same_runs(asked);
  asked.devices = 2;
  asked.shards = 2;
  expect_same_runs(asked);
  asked.sharded = true;
  asked.slices = 8;
  asked.exchange = "paired";
  expect_same_runs(asked);
}

TEST(ThreadsAndMpi, LeaveTheSameBytesOnMeshesOfAllAxes) {
  for (const char* mode : {"gather", "query", "heads"}) {
    expect_same_runs({.devices = 1, .slices = 4, .steps = 2, .context = 2, .mode = mode});
    expect_same_runs({.devices = 2,
                      .slices = 4,
                      .precision = "bf16",
                      .steps = 2,
                      .shards = 2,
                      .tensor = 2,
                      .context = 2,
                      .mode = mode});
  }
  expect_same_runs(
      {.devices = 2, .slices = 4, .exchange = "paired", .steps = 2, .context = 2, .mode = "query"});
  expect_same_runs({.devices = 1,
                    .slices = 4,
                    .steps = 2,
                    .shards = 2,
                    .tensor = 2,
                    .context = 2,
                    .mode = "query",
                    .replicas = 2});
  expect_same_runs(
      {.devices = 2, .schedule = "zb-v", .steps = 2, .context = 2, .mode = "heads", .replicas = 2});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithExperts) {
  expect_same_runs({.devices = 2, .slices = 4, .precision = "bf16", .steps = 3, .experts = 4});
  expect_same_runs(
      {.devices = 2, .slices = 4, .precision = "bf16", .steps = 3, .replicas = 2, .experts = 4, .expert = 2});
  expect_same_runs({.devices = 1,
                    .slices = 4,
                    .steps = 3,
                    .shards = 2,
                    .tensor = 2,
                    .context = 2,
                    .mode = "heads",
                    .experts = 8,
                    .expert = 4});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithDocuments) {
  expect_same_runs({.devices = 2, .slices = 8, .precision = "bf16", .exchange = "paired", .documents = true});
  expect_same_runs({.devices = 1,
                    .slices = 4,
                    .steps = 3,
                    .shards = 2,
                    .tensor = 2,
                    .context = 2,
                    .mode = "query",
                    .documents = true});
  expect_same_runs({.devices = 2, .schedule = "zb-v", .steps = 3, .replicas = 2, .documents = true});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithASplitBackward) {
  expect_same_runs({.schedule = "zb-h1", .precision = "bf16"});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithTwoChunksInAV) {
  for (const int ranks : {2, 4})
    expect_same_runs({.devices = ranks, .schedule = "zb-v", .precision = "bf16"});
}

TEST(ThreadsAndMpi, LeaveTheSameBytesWithInterleavedSlices) {
  expect_same_runs({.schedule = "seq1f1b-interleaved", .slices = 4});
}

// Over twenty steps: processes, threads and one device alone, with all that may change who computes what.
TEST(ThreadsAndMpi, LeaveTheSameBytesAfterTwentySteps) {
  for (const char* precision : {"f32", "bf16"}) {
    const Scratch scratch;
    scratch.write("run.toml", small_run_file(scratch));
    Case asked{.devices = 1, .slices = 4, .precision = precision, .steps = 20};
    const Left alone =
        left_by_command(scratch, "alone", with_threads(1, arguments_of(asked, scratch, "alone")));
    ASSERT_EQ(alone.steps.size(), 20u);
    ASSERT_FALSE(alone.weights.empty());
    const auto expect_as_alone = [&](const std::string& directory, const Arguments& command) {
      SCOPED_TRACE(directory + ", " + precision);
      const Left left = left_by_command(scratch, directory, command);
      EXPECT_EQ(left.steps, alone.steps);
      EXPECT_TRUE(left.weights == alone.weights);
    };
    for (const int ranks : {2, 4}) {
      asked.devices = ranks;
      const std::string number = std::to_string(ranks);
      expect_as_alone("mpi" + number, with_mpirun(ranks, arguments_of(asked, scratch, "mpi" + number)));
      expect_as_alone("threads" + number,
                      with_threads(ranks, arguments_of(asked, scratch, "threads" + number)));
    }
  }
  expect_same_runs(
      {.devices = 2, .slices = 8, .precision = "bf16", .sharded = true, .exchange = "levelled", .steps = 20});
  expect_same_runs({.devices = 4, .schedule = "zb-v", .steps = 20});
}

TEST(ThreadsAndMpi, LeaveWhatOneRankAloneLeaves) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto arguments = [&](int ranks, const std::string& directory) {
    return Arguments{"train",        scratch / "run.toml", "--parallel.pp", std::to_string(ranks),
                     "--output.dir", scratch / directory};
  };
  const Left alone = left_by_command(scratch, "alone", with_threads(1, arguments(1, "alone")));
  EXPECT_EQ(alone.steps, left_by_command(scratch, "mpi1", with_mpirun(1, arguments(1, "mpi1"))).steps);
  const Left two = left_by_command(scratch, "mpi2", with_mpirun(2, arguments(2, "mpi2")));
  EXPECT_EQ(alone.steps, two.steps);
  EXPECT_TRUE(alone.weights == two.weights);
}

}  // namespace
}  // namespace penstock::testing
