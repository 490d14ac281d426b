// SPDX-License-Identifier: Apache-2.0
#include "cli/train/host_check.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "run_program.h"

namespace penstock::cli {
namespace {

using testing::Arguments;
using testing::Ending;

run::Options options_of() {
  run::Options options;
  options.data.text = "corpus.txt";
  options.data.seq_len = 4096;
  options.model.shape.hidden = 64;
  options.model.shape.ffn = 256;
  options.model.shape.heads = options.model.shape.kv_heads = 4;
  options.parallel.pp = 2;
  options.train.checkpoint_every = 0;
  return options;
}

Bytes bytes_with(const run::Run& run, model::Policy policy) {
  run::Run other = run::with_policy(run, policy);
  other.predicted = run::predict_memory(other, run::program_of(other));
  return bytes_on_host(other, 2);
}

std::string host_refusal(const run::Run& run, int ranks, Bytes free) {
  return failure<NoAnswer>([&] { require_host_memory(run, ranks, free); });
}

TEST(HostMemory, OfAllRanksOnAHostIsTheLimit) {
  const run::Run run = run::resolve(options_of());
  const Bytes both = bytes_on_host(run, 2), one = bytes_on_host(run, 1);
  EXPECT_EQ(both, run.predicted[0].total() + run.predicted[1].total());
  EXPECT_EQ(one, std::max(run.predicted[0].total(), run.predicted[1].total()));
  EXPECT_EQ(host_refusal(run, 2, both), "");
  EXPECT_TRUE(host_refusal(run, 2, both - 1).starts_with("the 2 ranks on this host ("));
  EXPECT_EQ(host_refusal(run, 1, one), "") << "ranks on other hosts do not count";
  run::Options unchecked = options_of();
  unchecked.train.memory_check = "off";
  EXPECT_EQ(host_refusal(run::resolve(unchecked), 2, 1), "");
}

TEST(HostMemory, HoldsOffloadedRecordsAndCopiesForCheckpointsToo) {
  run::Options options = options_of();
  options.memory.offload.number = 1;
  const run::Run offloaded = run::resolve(options);
  EXPECT_EQ(bytes_on_host(offloaded, 1),
            std::max(offloaded.predicted[0].total() + offloaded.predicted[0].host,
                     offloaded.predicted[1].total() + offloaded.predicted[1].host));
  for (const char* precision : {"f32", "bf16"}) {
    options = options_of();
    options.train.precision = precision;
    const Bytes without = bytes_on_host(run::resolve(options), 2);
    options.train.checkpoint_every = 10;
    // Masters, and two moments: 12 bytes a parameter.
    const std::int64_t parameters = model::total_parameters(run::resolve(options).shape());
    EXPECT_EQ(bytes_on_host(run::resolve(options), 2) - without, 12 * parameters) << precision;
  }
}

// Two of each rank's masters and moments; on one of several hosts, two also of a rank elsewhere.
TEST(HostMemory, HoldsTheCopiesOfItsRanksAndOfThoseItKeepsForOthers) {
  run::Options options = options_of();
  options.train.precision = "f32";
  const Bytes without = bytes_on_host(run::resolve(options), 2);
  options.train.buddy_every = 1;
  const run::Run run = run::resolve(options);
  EXPECT_EQ(bytes_on_host(run, 2) - without, 2 * 12 * model::total_parameters(run.shape()));
  Bytes fullest = 0, kept = 0;
  for (const model::MemoryPeaks& memory : run.predicted) {
    const Bytes copies = 2 * (memory.optimizer + memory.optimizer / 2);
    fullest = std::max(fullest, memory.total() + copies);
    kept = std::max(kept, copies);
  }
  EXPECT_EQ(bytes_on_host(run, 1), fullest + kept);
}

// As in a container whose /dev/shm is smaller than its memory.
TEST(HostMemory, ForCopiesIsThatOfTheirFileSystemToo) {
  run::Options options = options_of();
  const auto refusal = [&](Bytes free) {
    return failure<NoAnswer>([&] { require_room_for_copies(run::resolve(options), 2, free); });
  };
  EXPECT_EQ(refusal(0), "") << "a run without copies";
  options.train.precision = "f32";
  options.train.buddy_every = 1;
  options.train.buddy_dir = "/proc";  // without a size
  const run::Run run = run::resolve(options);
  const Bytes needed = copies_on_host(run, 2);
  EXPECT_EQ(needed, 2 * 12 * model::total_parameters(run.shape()));
  EXPECT_EQ(refusal(needed), "");
  EXPECT_NE(refusal(needed - 1).find(" in train.buddy_dir = \"/proc\", but "), std::string::npos);
  EXPECT_EQ(free_for_copies(options.train, 0), std::nullopt);
  options.train.buddy_dir = "/dev/shm/new";
  const auto free = free_for_copies(options.train, 0);
  ASSERT_TRUE(free);
  EXPECT_EQ(free_for_copies(options.train, Bytes{1} << 60), std::filesystem::space("/dev/shm").capacity);
}

TEST(HostMemory, OfAGpuIsThatOfTheThreadsThatTakeItInTurn) {
  const run::Run run = run::resolve(options_of());
  const Bytes first = run.predicted[0].total(), last = run.predicted[1].total();
  EXPECT_EQ(bytes_on_gpu(run, 0, 2), first);
  EXPECT_EQ(bytes_on_gpu(run, 1, 2), last);
  EXPECT_EQ(bytes_on_gpu(run, 0, 1), first + last);
  EXPECT_EQ(bytes_on_gpu(run, 2, 3), 0);
}

// Copies of an earlier start are in use, but are there for the one that goes on.
TEST(HostMemory, HasRoomForTheStartAfterOneThatWasAdmitted) {
  run::Options options = options_of();
  options.train.buddy_every = 1;
  const run::Run run = run::resolve(options);
  const Bytes needed = bytes_on_host(run, 2), copies = needed / 4;
  const profile::HostMemory memory{.total = 2.0 * static_cast<double>(needed),
                                   .used = static_cast<double>(needed + copies)};
  EXPECT_NE(host_refusal(run, 2, free_on_host(memory, 0)), "");
  EXPECT_EQ(host_refusal(run, 2, free_on_host(memory, copies)), "");
  EXPECT_EQ(free_on_host(memory, 4 * needed), 2 * needed) << "no more than there is";
}

// What the message names does fit.
TEST(HostMemory, NamesSettingsThatFit) {
  const run::Run run = run::resolve(options_of());
  const Bytes needed = bytes_with(run, model::Policy::Full);
  const std::string text = host_refusal(run, 2, needed);
  ASSERT_NE(text.find("memory.policy = \""), std::string::npos) << text;
  const std::string policy = text.substr(text.find("memory.policy = \"") + 17);
  EXPECT_LE(bytes_with(run, model::parse_policy(policy.substr(0, policy.find('"')))), needed);
}

// On the CPU records stay in the same memory when they leave for the host's.
TEST(HostMemory, NamesAShareOfOffloadingOnlyWhereItGivesRoom) {
  run::Options options = options_of();
  const Bytes without = bytes_on_host(run::resolve(options), 2);
  const auto told = [&](Bytes free) { return host_refusal(run::resolve(options), 2, free); };
  EXPECT_EQ(told(without - 1).find("memory.offload = "), std::string::npos) << told(without - 1);
  options.memory.offload_to = "disk";
  EXPECT_NE(told(without - 1).find("memory.offload = 0."), std::string::npos) << told(without - 1);
  options.memory.offload_to = "host";
  options.memory.offload.number = 1;
  EXPECT_NE(told(without).find("memory.offload = 0 would fit"), std::string::npos) << told(without);
}

TEST(HostMemory, OfARunThatCannotFitIsRefusedBeforeAnythingIsWritten) {
  const Scratch scratch;
  scratch.write("run.toml", testing::small_run_file(scratch));
  for (const Arguments& how : {Arguments{}, {"--dry-run"}}) {
    for (const bool processes : {false, true}) {
      Arguments words{
          "train", scratch / "run.toml", "--model.hidden", "65536", "--model.ffn", "262144", "--model.layers",
          "64"};
      words.insert(words.end(), how.begin(), how.end());
      const Ending ending =
          testing::run_program(processes ? testing::with_mpirun(2, words) : testing::with_threads(2, words));
      EXPECT_EQ(ending.exit_code, 1) << ending.err;
      EXPECT_TRUE(ending.out.starts_with("memory    peak of each device")) << ending.out;
      ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
      EXPECT_TRUE(ending.complaints()[0].starts_with("the 2 ranks on this host (")) << ending.err;
      EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
    }
  }
}

// Killed in its first step, a run leaves a directory that the next one takes.
TEST(RunDirectory, OfARunThatCompletedNoStepIsTakenOver) {
  const Scratch scratch;
  scratch.write("run.toml", testing::small_run_file(scratch));
  std::filesystem::create_directories(scratch / "run");
  scratch.write("run/lock", "");
  scratch.write("run/run.toml", "of the run before");
  const Arguments words = testing::with_threads(2, {"train", scratch / "run.toml"});
  const Ending ending = testing::run_program(words);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_EQ(ending.complaints(), std::vector<std::string>{"note: taking over " + scratch / "run" +
                                                          ": the run in it completed no step"});
  EXPECT_EQ(testing::run_program(words).exit_code, 2) << "it has steps now";
}

}  // namespace
}  // namespace penstock::cli
