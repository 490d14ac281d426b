// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "comm/single.h"
#include "profile/hardware_text.h"
#include "profile/host_memory.h"
#include "profile/links.h"
#include "profile/memory_work.h"
#include "profile/recorder.h"
#include "profile/ring.h"
#include "profile/sampling.h"
#include "run/hardware_file.h"
#include "run_program.h"
#include "sim/costs/engine.h"

namespace penstock::cli {
namespace {

using testing::Ending;
using testing::run_program;

TEST(Sampling, TheMedianOfWhatWasDoneIsReportedAndEveryRepeatIsCounted) {
  int calls = 0;
  const auto sample = profile::measure([&] { ++calls; }, {.budget = 0, .least = 7, .most = 100});
  EXPECT_EQ(sample.repeats, 7);
  EXPECT_EQ(calls, 8) << "one before, to warm up";
  EXPECT_GT(sample.seconds, 0);
  EXPECT_LE(sample.disturbed, sample.repeats);
}

TEST(Sampling, LongRepeatsAreFew) {
  const auto sample = profile::measure([] {}, {.budget = 0, .least = 7, .enough = -1});
  EXPECT_EQ(sample.repeats, 2);
}

TEST(Ring, AFigureThatIsMeasuredOnceHasTwoSetsOfOperands) {
  EXPECT_EQ(profile::cold_sets({}, 1 << 20), 96u) << "caches hold none of them";
  EXPECT_EQ(profile::cold_sets({}, 1 << 30), 3u);
  EXPECT_EQ(profile::cold_sets(profile::kOnce, 1 << 20), 2u);
}

// Of a machine that does half as much while `slow`: what it says of works of so many seconds.
struct DrawnMachine {
  bool slow = false;
  Seconds asked = 0;

  profile::Sample operator()(const std::function<void()>& work, const profile::Effort&) {
    work();
    return {.seconds = asked * (slow ? 2 : 1), .repeats = 1};
  }
};

TEST(Recorder, WhatOtherProgramsLeaveOfTheMachineIsTheSameForAllFigures) {
  const auto world = comm::make_single();
  DrawnMachine machine;
  profile::Recorder recorder(*world, {}, std::ref(machine));
  recorder.compare_with([&] { machine.asked = 1; });
  const auto figure = [&](Seconds seconds, bool slow) {
    machine.slow = slow;
    return recorder.seconds([&machine, seconds] { machine.asked = seconds; });
  };
  // Of three figures each: quickly, slowly, quickly. The first of each lies between two speeds.
  const auto figures = [&](bool first, bool second, bool third) {
    std::vector<Seconds> seconds;
    for (const bool slow : {first, first, second, second, third, third, third})
      seconds.push_back(figure(30, slow));
    return std::vector<Seconds>{seconds[1], seconds[3], seconds[6]};
  };
  EXPECT_EQ(figures(false, true, false), (std::vector<Seconds>{30, 60, 30})) << "nothing is known yet";
  recorder.take_again();
  EXPECT_EQ(figures(true, true, true), (std::vector<Seconds>{30, 30, 30}));
  recorder.compare_with({});
  EXPECT_EQ(figure(30, true), 60) << "what is not computed is as it was measured";
}

// A thread of the yardstick that waits for a core makes no figure faster than the processor.
TEST(Recorder, AYardstickThatIsDisturbedItselfSaysNothing) {
  const auto world = comm::make_single();
  DrawnMachine machine;
  Seconds yardstick = 1;
  profile::Recorder recorder(*world, {}, std::ref(machine));
  recorder.compare_with([&] { machine.asked = yardstick; });
  const auto figure = [&] { return recorder.seconds([&machine] { machine.asked = 30; }); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(figure(), 30);
  recorder.take_again();
  yardstick = 20;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(figure(), 30);
}

TEST(HostMemory, ACGroupThatAllowsLessThanTheHostHasCounts) {
  const std::string host = "MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:   400 kB\n";
  EXPECT_EQ(profile::parse_host_memory({host, "max\n", "5\n", {}}).total, 1024000);
  EXPECT_EQ(profile::parse_host_memory({host, "max\n", "5\n", {}}).used, 600 * 1024);
  EXPECT_EQ(profile::parse_host_memory({host, "2048\n", "512\n", {}}).total, 2048);
  EXPECT_EQ(profile::parse_host_memory({host, "2048\n", "512\n", {}}).used, 512);
  EXPECT_EQ(profile::parse_host_memory({host, "512000\n", "512\n", {}}).used, 512000 - 400 * 1024)
      << "of the host less is available than the group may have";
  EXPECT_EQ(profile::parse_host_memory({}).total, 0);
  EXPECT_EQ(
      profile::parse_host_memory({host, "2048\n", "1512\n", "inactive_file 8\ntotal_inactive_file 1000\n"})
          .used,
      512)
      << "of version 1, with the groups in it";
}

TEST(HostMemory, AJobsGroupsAreThoseOfTheProcessAndAllAboveThem) {
  using Groups = std::vector<std::string>;
  EXPECT_EQ(profile::memory_groups("0::/slurm/job_7/step_0\n", "/g"),
            (Groups{"/g/slurm/job_7/step_0", "/g/slurm/job_7", "/g/slurm", "/g"}));
  EXPECT_EQ(profile::memory_groups("12:cpu,cpuacct:/a\n5:memory:/slurm/job_7\n0::/\n", "/g"),
            (Groups{"/g/memory/slurm/job_7", "/g/memory/slurm", "/g/memory", "/g"}));
  EXPECT_EQ(profile::memory_groups("", "/g"), Groups());
}

TEST(Profile, CountsTheBytesOfALayersElementwiseWorkAsThePlannerDoes) {
  for (const profile::Sizes& sizes : {profile::Sizes{}, profile::large_sizes()}) {
    const model::Shape shape{.hidden = sizes.elementwise_hidden,
                             .ffn = sizes.elementwise_ffn,
                             .heads = sizes.elementwise_heads,
                             .kv_heads = sizes.elementwise_heads};
    const auto forward = sim::forward_traffic(sim::kPenstock, shape, sim::Family::Llama);
    const auto backward = sim::backward_traffic(sim::kPenstock, shape, sim::Family::Llama);
    EXPECT_DOUBLE_EQ(profile::forward_bytes(model::Precision::BF16, sizes), forward.hidden + forward.split);
    EXPECT_DOUBLE_EQ(profile::backward_bytes(model::Precision::BF16, sizes),
                     backward.hidden + backward.split);
  }
}

TEST(Profile, RanksExchangeMessagesInsideTheirHostAndWithTheNextOne) {
  const auto expect = [](const std::vector<std::string>& hosts, int rank, int here, int away) {
    const profile::MessagePartners partners = profile::message_partners(hosts, rank);
    EXPECT_EQ(partners.here, here) << rank;
    EXPECT_EQ(partners.away, away) << rank;
  };
  expect({"a"}, 0, -1, -1);
  expect({"a", "a", "a"}, 1, 0, -1);
  expect({"a", "a", "a"}, 2, -1, -1);
  const std::vector<std::string> by_turns{"a", "b", "c", "a", "b", "a"};
  expect(by_turns, 0, 3, 1);
  expect(by_turns, 1, 4, 0);
  expect(by_turns, 2, -1, -1);
  expect(by_turns, 4, 1, 3);
  expect(by_turns, 5, -1, -1);
}

// A megabyte in 0.1 ms between the two ranks of a host, and in 1 ms to the other host.
TEST(Profile, OfSeveralHostsHasTheNetworkBetweenThem) {
  profile::Measurements measured;
  measured.sizes = {
      .matrix_tokens = {64}, .matrix_width = {128}, .attention_tokens = {64}, .message_kb = {1, 1001}};
  measured.products = {{1e12}, {1e12}, {1e12}};
  measured.attention = {{1e11}, {1e11}, {1e11}, {1e11}};
  measured.elementwise = {{1e6}, {1e10}, {1e10}};
  measured.optimizer_rate = measured.copy_rate = measured.memory_rate = 1e10;
  measured.message_seconds = {1e-5, 11e-5};
  const auto written = [&](int elsewhere) {
    const profile::MachineFacts facts{.description = "a processor",
                                      .ranks = 2,
                                      .elsewhere = elsewhere,
                                      .transport = "processes",
                                      .memory_bytes = 8e9,
                                      .sharers = 2,
                                      .host_bytes = 8e9};
    return run::parse_hardware_text(profile::hardware_text("hosts", facts, measured), "hosts").hardware;
  };
  const sim::Hardware one = written(0);
  EXPECT_DOUBLE_EQ(one.network.gbps_per_gpu, 10);
  measured.network_seconds = {1e-4, 11e-4};
  const sim::Hardware two = written(2);
  EXPECT_EQ(two.node.gpus, 2);
  EXPECT_DOUBLE_EQ(two.device.memory_gb, 4);
  EXPECT_DOUBLE_EQ(two.node.link_gbps, 10);
  EXPECT_DOUBLE_EQ(two.node.link_latency_us, 10);
  EXPECT_DOUBLE_EQ(two.network.gbps_per_gpu, 1);
  EXPECT_DOUBLE_EQ(two.network.latency_us, 100);
}

// Ranks as threads and as processes write files that the planner reads, with a comment behind every figure.
TEST(ProfileCommand, WritesAHardwareFileThatThePlannerReadsFromThreadsAndFromProcesses) {
  const Scratch scratch;
  for (const bool processes : {false, true}) {
    const std::string file = scratch / (processes ? "processes.toml" : "threads.toml");
    const testing::Arguments words{"profile", "--budget", "0", "--out", file};
    const Ending ending =
        run_program(processes ? testing::with_mpirun(2, words) : testing::with_threads(2, words), 400);
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_EQ(ending.out, "");
    const sim::Hardware hardware = run::read_hardware_file(file).hardware;
    EXPECT_EQ(hardware.node.gpus, 2);
    EXPECT_EQ(hardware.device.name, "this-machine");
    EXPECT_EQ(hardware.measured.matrix_tflops.size(),
              hardware.measured.matrix_tokens.size() * hardware.measured.matrix_width.size());
    EXPECT_GT(hardware.node.disk_gbps, 0);
    const std::string text = scratch.read(processes ? "processes.toml" : "threads.toml");
    EXPECT_NE(text.find("measured once, not warmed up"), std::string::npos) << text;
    for (const std::string& line : testing::lines_of(text.substr(0, text.find("[measured]")))) {
      if (line.find(" = ") == std::string::npos) continue;
      EXPECT_NE(line.find("# "), std::string::npos) << line;
    }
    const Ending plan = run_program({PENSTOCK_PROGRAM, "plan", PENSTOCK_SOURCE_DIR "/plans/this-machine.toml",
                                     "--cluster.hardware", file, "--json"});
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
  }
}

TEST(ProfileCommand, RefusesWhatItCannotDoBeforeItMeasures) {
  const auto refused = [](testing::Arguments words) {
    words.insert(words.begin(), {PENSTOCK_PROGRAM, "profile"});
    const Ending ending = run_program(words);
    EXPECT_EQ(ending.exit_code, 2) << ending.err;
    return ending.err;
  };
  EXPECT_NE(refused({"--ranks", "0"}).find("--ranks"), std::string::npos);
  EXPECT_NE(refused({"--ranks", "9999999"}).find("--ranks 9999999 is too many"), std::string::npos);
  EXPECT_NE(refused({"--threads", "9999999"}).find("--threads 9999999 is too many"), std::string::npos);
  EXPECT_NE(refused({"--out", "/nowhere/at/all.toml"}).find("/nowhere/at"), std::string::npos);
  EXPECT_NE(refused({"--out", "/tmp"}).find("folder"), std::string::npos);
  EXPECT_NE(refused({"--precision", "f16"}).find("bf16 or f32"), std::string::npos);
  EXPECT_NE(refused({"--budget", "-1"}).find("--budget"), std::string::npos);
  EXPECT_NE(refused({"--budget", "nan"}).find("--budget"), std::string::npos);
  EXPECT_NE(refused({"--rank", "2"}).find("--rank"), std::string::npos);
  const Ending both = run_program(testing::with_mpirun(2, {"profile", "--ranks", "2"}));
  EXPECT_EQ(both.exit_code, 2);
  ASSERT_EQ(both.complaints().size(), 1u) << both.err;
  EXPECT_NE(both.complaints()[0].find("mpirun"), std::string::npos);
}

}  // namespace
}  // namespace penstock::cli
