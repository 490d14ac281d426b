// SPDX-License-Identifier: Apache-2.0
// memory.offload = "auto": the least share that fits memory.limit, alone and together with memory.policy =
// "auto"; and shares that are advised.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "failure.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"

namespace penstock::run {
namespace {

using Change = std::function<void(MemoryOptions&)>;

Options offload_options(const Change& change) {
  Options options;
  options.data.text = "corpus.txt";
  options.data.seq_len = 4096;
  options.parallel.pp = 2;
  options.schedule.slices = 8;
  options.train.batch = 4;
  change(options.memory);
  return options;
}

// The most that a device would need.
Bytes most_with(const Change& change) {
  Bytes bytes = 0;
  for (const auto& device : resolve(offload_options(change)).predicted)
    bytes = std::max(bytes, device.total());
  return bytes;
}

Bytes most_with(const std::string& policy, double share) {
  return most_with([&](auto& m) { m.policy = policy, m.offload.number = share; });
}

MemoryOptions chosen(const std::string& policy, Bytes limit, std::string* note = nullptr) {
  const run::Run run = resolve(offload_options(
      [&](auto& m) { m.policy = policy, m.offload.word = "auto", m.limit = std::to_string(limit) + " B"; }));
  if (note) *note = run.note(Topic::Memory);
  EXPECT_EQ(resolve(run.options).options.memory.offload, run.options.memory.offload);
  return run.options.memory;
}

TEST(OffloadAuto, IsTheLeastShareInWholePercentThatFits) {
  for (const char* policy : {"none", "balanced"}) {
    const Bytes none = most_with(policy, 0), all = most_with(policy, 1);
    ASSERT_LT(all, none);
    EXPECT_EQ(chosen(policy, none).offload, NumberOrWord{});
    for (const double part : {0.0, 0.3, 0.8}) {
      const Bytes limit = all + static_cast<Bytes>(part * static_cast<double>(none - all));
      std::string note;
      const double share = chosen(policy, limit, &note).offload.number;
      EXPECT_LE(most_with(policy, share), limit);
      EXPECT_GT(most_with(policy, share - 0.01), limit);
      EXPECT_NE(note.find("offload "), std::string::npos) << note;
      EXPECT_NE(note.find(": the least that fits in "), std::string::npos) << note;
    }
  }
}

TEST(OffloadAuto, TakesTheCheapestPolicyThatFitsWithAnyShare) {
  std::string note;
  const MemoryOptions first = chosen("auto", most_with("none", 1), &note);
  EXPECT_EQ(first.policy, "none");
  EXPECT_EQ(first.offload.number, 1);
  EXPECT_NE(note.find("policy none with offload 1"), std::string::npos) << note;
  const MemoryOptions next = chosen("auto", most_with("none", 1) - 1);
  EXPECT_NE(next.policy, "none");
  EXPECT_LE(most_with(next.policy, next.offload.number), most_with("none", 1) - 1);
}

TEST(OffloadAuto, IsNothingWithoutALimitAndNoAnswerWhereNothingFits) {
  const run::Run run = resolve(offload_options([](auto& m) { m.offload.word = "auto"; }));
  EXPECT_EQ(run.options.memory.offload, NumberOrWord{});
  EXPECT_NE(run.note(Topic::Memory).find("memory.limit sets no limit"), std::string::npos);
  const auto refused = [](const char* policy) {
    return failure<NoAnswer>([&] {
      resolve(
          offload_options([&](auto& m) { m.policy = policy, m.offload.word = "auto", m.limit = "1 MiB"; }));
    });
  };
  EXPECT_NE(refused("none").find("device 0 would need"), std::string::npos) << refused("none");
  EXPECT_NE(refused("auto").find("device 0 would need"), std::string::npos) << refused("auto");
}

TEST(OffloadAuto, ARunThatDoesNotFitIsToldTheShareThatWould) {
  const std::string told = failure<NoAnswer>([&] {
    resolve(offload_options(
        [&](auto& m) { m.policy = "auto", m.limit = std::to_string(most_with("full", 0) - 1) + " B"; }));
  });
  EXPECT_NE(told.find("; memory.offload = "), std::string::npos) << told;
}

// As of a GPU's host: its memory holds the records alone.
TEST(OffloadAuto, AHostWithoutRoomForTheRecordsIsToldASmallerShareThatItsDevicesHold) {
  const auto away = [](const run::Run& run) {
    Bytes bytes = 0;
    for (const auto& device : predict_memory(run, program_of(run))) bytes += device.host;
    return bytes;
  };
  run::Run run = resolve(offload_options([](auto& m) { m.offload.number = 1; }));
  const Bytes half = away(run) / 2;
  EXPECT_NE(settings_that_fit(run, half, away).find("; memory.offload = 0."), std::string::npos);
  run.memory_limit = greatest_total(run);
  const std::string told = settings_that_fit(run, half, away);
  EXPECT_EQ(told.find("memory.offload"), std::string::npos) << told;
}

}  // namespace
}  // namespace penstock::run
