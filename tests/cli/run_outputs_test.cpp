// SPDX-License-Identifier: Apache-2.0
// What a finished run tells at its end.
#include "cli/train/run_outputs.h"

#include <gtest/gtest.h>

#include "scratch.h"

namespace penstock::cli {
namespace {

TEST(RunOutputs, TellTheTrafficOfEveryAxisOfSeveralRanks) {
  const Scratch scratch;
  const train::RunDirectory directory(scratch / "run", train::RunStart::New);
  run::Run run;
  train::Summary alone{.steps = 1, .step_s = 2};
  alone.devices.push_back({{{"total", 1}}, {{"total", 1}}});
  train::Summary summary = alone;
  for (const mesh::Group group : train::kLayerAxes) summary.traffic[group] = {.sent = 512, .waited = 0.5};
  const std::string table = result_table(run, summary, "", directory);
  const std::string told = " ranks, waited for during 25.0 % of it at most\n";
  for (const char* line :
       {"\ntensor    512 B a step between tensor", "\ncontext   512 B a step between context",
        "\nexpert    512 B a step between expert"})
    EXPECT_NE(table.find(line + told), std::string::npos) << table;
  EXPECT_EQ(result_table(run, alone, "", directory).find("a step between"), std::string::npos);
}

TEST(RunOutputs, PrintASampleThatDoesNotControlTheTerminal) {
  const Scratch scratch;
  const train::RunDirectory directory(scratch / "run", train::RunStart::New);
  train::Summary summary{.steps = 1, .step_s = 2};
  summary.devices.push_back({{{"total", 1}}, {{"total", 1}}});
  const std::string table =
      result_table(run::Run(), summary, "one\n\n\ttwo\x1b[2J\xff\r\xE2\x82\xAC", directory);
  EXPECT_NE(table.find("\n\none\n\n\ttwo\\x1b[2J\\xff\\x0d\xE2\x82\xAC\n\n"), std::string::npos) << table;
}

TEST(RunOutputs, TellWhereAStoppedRunGoesOn) {
  run::Run run;
  run.options.train.checkpoint_every = 5;
  train::RunOutcome outcome{.stopped = true, .steps = 7, .checkpoint = "c/step-000007", .checkpoint_step = 7};
  EXPECT_EQ(stop_line(run, outcome),
            "stopped   after step 7 as asked; checkpoint c/step-000007, from which --resume continues\n");
  outcome.checkpoint = "c/step-000005";
  outcome.checkpoint_step = 5;
  EXPECT_EQ(stop_line(run, outcome),
            "stopped   after step 7 as asked; no checkpoint of it, since its loss or gradient is not finite; "
            "the newest is c/step-000005, from which --resume continues\n");
  run.options.train.checkpoint_every = 0;
  outcome.checkpoint.clear();
  outcome.checkpoint_step = 0;
  EXPECT_EQ(stop_line(run, outcome),
            "stopped   after step 7 as asked; no checkpoint of it, since train.checkpoint_every = 0\n");
}

}  // namespace
}  // namespace penstock::cli
