// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "failure.h"
#include "run/resolve.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::train {
namespace {

run::Run resolved(const std::function<void(run::Options&)>& change) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  change(options);
  return run::resolve(options);
}

TEST(Trainable, NamesTheFileWhoseScheduleKeepsTwoCopiesOfTheParameters) {
  const Scratch scratch;
  scratch.write("two.csv", schedule::to_csv(schedule::generate("dualpipe", schedule::request(2, 8, 1, 0))));
  const run::Run run = resolved([&](run::Options& options) { options.schedule.file = scratch / "two.csv"; });
  const std::string text = failure<InputError>([&] { require_trainable(run); });
  EXPECT_TRUE(text.starts_with("schedule.file = \"" + (scratch / "two.csv") + "\" keeps two copies")) << text;
}

// Everything resolves, and is refused here alone.
TEST(Trainable, RefusesWhatIsNotBuiltByItsKey) {
  const std::pair<const char*, std::function<void(run::Options&)>> cases[] = {
      {"parallel.cp = 2", [](run::Options& o) { o.parallel.cp = 2; }},
      {"parallel.tp = 2", [](run::Options& o) { o.parallel.tp = 2; }},
      {"model.experts = 4", [](run::Options& o) { o.model.shape.experts = 4; }}};
  for (const auto& [text, change] : cases) {
    const std::string refusal = failure<InputError>([&] { require_trainable(resolved(change)); });
    EXPECT_TRUE(refusal.starts_with(text)) << refusal;
    EXPECT_NE(refusal.find("can be planned and simulated"), std::string::npos) << refusal;
  }
  EXPECT_NO_THROW(require_trainable(resolved([](run::Options&) {})));
}

}  // namespace
}  // namespace penstock::train
