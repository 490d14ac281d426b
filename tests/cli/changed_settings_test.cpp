// SPDX-License-Identifier: Apache-2.0
// What a resumed run says of settings that change its bits.
#include <gtest/gtest.h>

#include "cli/train/resume.h"
#include "run/resolve/resolve.h"
#include "train/checkpoint/settings.h"

namespace penstock::cli {
namespace {

TEST(ChangedSettings, OfTheScheduleOrPolicyCountUnderExchange) {
  const auto run_with = [](const std::string& exchange, std::int64_t chunks, const std::string& policy) {
    run::Options options;
    options.data.text = "corpus.txt";
    options.parallel.pp = 2;
    options.schedule.slices = 4;
    options.schedule.chunks = chunks;
    options.schedule.exchange = exchange;
    options.memory.policy = policy;
    return run::resolve(options);
  };
  for (const char* exchange : {"off", "levelled"}) {
    const run::Run run = run_with(exchange, 1, "none");
    const train::CheckpointFacts facts{.settings = train::settings_of(run, 1)};
    const std::size_t counts = exchange == std::string("off") ? 0 : 1;
    EXPECT_EQ(changed_settings(facts, run_with(exchange, 2, "none"), 1).size(), counts);
    EXPECT_EQ(changed_settings(facts, run_with(exchange, 1, "full"), 1).size(), counts);
    EXPECT_TRUE(changed_settings(facts, run_with(exchange, 1, "balanced"), 1).empty()) << "keeps attention";
  }
}

TEST(ChangedSettings, ThatAreNoKeysAreToldInWords) {
  run::Options options;
  options.data.text = "corpus.txt";
  const run::Run run = run::resolve(options);
  train::CheckpointFacts facts{.settings = train::settings_of(run, 1)};
  EXPECT_TRUE(changed_settings(facts, run, 1).empty());
  for (auto& [name, value] : facts.settings)
    if (name == train::kGradientOrder) value = "\"not ascending, 1\"";
  EXPECT_EQ(changed_settings(facts, run, 1),
            std::vector<std::string>{
                "the schedule adds gradients up in another order than that of the checkpoint's run: the run "
                "continues, but not bit-identical to one that never stopped"});
}

}  // namespace
}  // namespace penstock::cli
