// SPDX-License-Identifier: Apache-2.0
// What a resumed run says of settings that change its bits.
#include <gtest/gtest.h>

#include "cli/train/resume.h"
#include "run/resolve/resolve.h"
#include "train/checkpoint/settings.h"

namespace penstock::cli {
namespace {

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
