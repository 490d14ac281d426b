// SPDX-License-Identifier: Apache-2.0
// schedule.slices = 0 and schedule.chunks = 0: the fastest by the machine's speeds.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/units.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "run/resolve/shortened.h"
#include "scratch.h"

namespace penstock::run {
namespace {

Options options_of(const std::string& schedule, std::int64_t slices, std::int64_t chunks) {
  Options options;
  options.model.shape = {.layers = 8, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = 4};
  options.data.text = "no file";
  options.data.seq_len = 2048;
  options.parallel.pp = 2;
  options.train.batch = 4;
  options.schedule.name = schedule;
  options.schedule.slices = slices;
  options.schedule.chunks = chunks;
  return options;
}

// Products of few rows are slow, or are as fast as all others.
Machine machine_of(bool few_rows_are_slow) {
  Machine machine;
  sim::Measured& measured = machine.hardware.measured;
  measured.matrix_tokens = {16, 512, 2048};
  measured.matrix_width = {64, 1024};
  const double few = few_rows_are_slow ? 0.001 : 0.1;
  for (Numbers* rates :
       {&measured.matrix_tflops, &measured.matrix_input_tflops, &measured.matrix_weight_tflops})
    *rates = {few, few, 0.1, 0.1, 0.1, 0.1};
  return machine;
}

Seconds seconds_with(const Options& options, const Machine& machine) {
  return simulated_seconds(shortened(lay_out(options, machine)));
}

TEST(ChooseSlices, TakesNoNumberSlowerThanAnyOther) {
  for (const bool few_rows_are_slow : {false, true}) {
    const Machine machine = machine_of(few_rows_are_slow);
    const run::Run run = resolve(options_of("slimpipe", 0, 0), machine);
    const Seconds chosen = seconds_with(run.options, machine);
    for (const std::int64_t chunks : {1, 2, 4}) {
      for (const std::int64_t slices : {1, 2, 4, 8, 16, 32, 64}) {
        Options other = options_of("slimpipe", slices, chunks);
        try {
          EXPECT_LE(kWorthwhile * chosen, seconds_with(other, machine) * (1 + 1e-12))
              << slices << " slices, " << chunks << " chunks; chosen: " << run.note(Topic::Schedule);
        } catch (const InputError&) {
          // a pair that the schedule does not take
        }
      }
    }
  }
}

TEST(ChooseSlices, TakesFewerWhereProductsOfFewRowsAreSlow) {
  const run::Run quick = resolve(options_of("slimpipe", 0, 1), machine_of(false));
  const run::Run slow = resolve(options_of("slimpipe", 0, 1), machine_of(true));
  EXPECT_GT(quick.options.schedule.slices, slow.options.schedule.slices);
  EXPECT_EQ(slow.options.schedule.chunks, 1) << "was given";
  EXPECT_EQ(slow.note(Topic::Schedule).find(std::to_string(slow.options.schedule.slices) + " slice"), 0u)
      << slow.note(Topic::Schedule);
  EXPECT_NE(slow.note(Topic::Schedule).find("in simulation"), std::string::npos)
      << slow.note(Topic::Schedule);
}

TEST(ChooseSlices, ChoosesChunksAloneAndForUnslicedSchedules) {
  const run::Run sliced = resolve(options_of("slimpipe", 8, 0), machine_of(false));
  EXPECT_EQ(sliced.options.schedule.slices, 8);
  EXPECT_GT(sliced.options.schedule.chunks, 1) << sliced.note(Topic::Schedule);
  const run::Run unsliced = resolve(options_of("interleaved", 0, 0), machine_of(false));
  EXPECT_EQ(unsliced.options.schedule.slices, 1);
  EXPECT_GE(unsliced.options.schedule.chunks, 2);
  const run::Run plain = resolve(options_of("1f1b", 0, 0), machine_of(false));
  EXPECT_EQ(plain.options.schedule.slices, 1);
  EXPECT_EQ(plain.options.schedule.chunks, 1);
  const std::string note = plain.note(Topic::Schedule);
  EXPECT_EQ(note.rfind("1 slice and 1 chunk: ", 0), 0) << note;
}

// Greedy's order depends on the times of the stages, which a large vocabulary makes unequal.
TEST(ChooseSlices, CountsTheLayersOfAConfigFile) {
  const Scratch scratch;
  scratch.write("config.json", R"({"num_hidden_layers": 32, "hidden_size": 64, "vocab_size": 300,
      "intermediate_size": 96, "num_attention_heads": 4})");
  Options options = options_of("zb-v", 1, 0);
  options.model = {};
  options.model.config = scratch / "config.json";
  options.parallel.pp = 16;
  EXPECT_EQ(resolve(options, machine_of(false)).options.schedule.chunks, 2) << "of the default there are 8";
}

TEST(ChooseSlices, SimulatesTheScheduleThatIsRun) {
  Options options = options_of("greedy", 0, 0);
  options.model.shape.vocab = 32000;
  const run::Run run = resolve(options, machine_of(false));
  const std::string seconds = print_seconds(simulated_seconds(shortened(run)));
  EXPECT_NE(run.note(Topic::Schedule).find(" in simulation, " + seconds), std::string::npos)
      << seconds << "; " << run.note(Topic::Schedule);
}

TEST(ChooseSlices, StaysWithinTheLimitOfMemory) {
  Options options = options_of("slimpipe", 0, 1);
  const Machine machine = machine_of(true);
  const run::Run free = resolve(options, machine);
  const Bytes peak = std::max(free.predicted[0].total(), free.predicted[1].total());
  options.memory.limit = std::to_string(peak - 1) + " B";
  const run::Run limited = resolve(options, machine);
  EXPECT_NE(limited.options.schedule.slices, free.options.schedule.slices);
  EXPECT_LT(std::max(limited.predicted[0].total(), limited.predicted[1].total()), peak);
}

// By which "auto" chooses.
TEST(SimulatedSeconds, HaveCopiesAtTheSpeedOfWhereTheRecordsGo) {
  Options options = options_of("slimpipe", 8, 1);
  options.memory.offload.number = 1;
  Machine machine = machine_of(false);
  const Seconds host = seconds_with(options, machine);
  options.memory.offload_to = "disk";
  EXPECT_EQ(seconds_with(options, machine), host) << "the disk's is not known";
  machine.hardware.node.disk_gbps = 1e-3;
  EXPECT_GT(seconds_with(options, machine), 2 * host);
}

TEST(ChooseSlices, LeavesUnsetNumbersTheirDefaultsAndSaysNothing) {
  const run::Run run = resolve(options_of("slimpipe", kUnset, kUnset), machine_of(false));
  EXPECT_EQ(run.options.schedule.slices, 8);
  EXPECT_EQ(run.options.schedule.chunks, 1);
  EXPECT_EQ(run.note(Topic::Schedule), "");
}

TEST(ChooseSlices, SaysWhyAScheduleTakesNoneOfThem) {
  Options options = options_of("slimpipe", 0, 0);
  options.parallel.pp = 16;
  try {
    resolve(options, machine_of(false));
    FAIL() << "16 stages of 8 layers";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("model.layers = 8"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace penstock::run
