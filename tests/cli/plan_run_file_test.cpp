// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "plan_program.h"

namespace penstock::cli {
namespace {

using testing::Arguments;
using testing::Ending;
using testing::run_program;
using Json = nlohmann::json;

TEST(PlanCommand, ARunFileSaysNoLackOfTheTrainerAndStarts) {
  const Scratch scratch;
  ASSERT_EQ(plan({kPlans + "mixtral-8x7b.toml", "--run-file", scratch / "mixtral.toml"}).exit_code, 0);
  EXPECT_EQ(scratch.read("mixtral.toml").find("# the trainer cannot run this yet"), std::string::npos);

  testing::small_run_file(scratch);  // writes corpus.txt
  ASSERT_EQ(plan({kPlans + "this-machine.toml", "--workload.text", scratch / "corpus.txt",
                  "--workload.seq_len", "512", "--model.layers", "2", "--model.hidden", "64", "--model.ffn",
                  "96", "--run-file", scratch / "small.toml"})
                .exit_code,
            0);
  EXPECT_EQ(scratch.read("small.toml").find("cannot run"), std::string::npos);
  const Ending run =
      run_program({PENSTOCK_PROGRAM, "train", scratch / "small.toml", "--ranks", "2",
                   "--data.validation_fraction", "0", "--train.steps", "1", "--output.dir", scratch / "run"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(PlanCommand, ARunFileOfAllAxesStarts) {
  const Scratch scratch;
  testing::small_run_file(scratch);
  const Ending planned = plan({kPlans + "this-machine.toml",
                               "--workload.text",
                               scratch / "corpus.txt",
                               "--workload.seq_len",
                               "512",
                               "--model.layers",
                               "2",
                               "--model.hidden",
                               "64",
                               "--model.ffn",
                               "96",
                               "--cluster.hardware",
                               "h100",
                               "--cluster.gpus",
                               "8",
                               "--search.tp",
                               "2",
                               "--search.cp",
                               "2",
                               "--search.pp",
                               "2",
                               "--run-file",
                               scratch / "hybrid.toml"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const std::string file = scratch.read("hybrid.toml");
  for (const char* line : {"\ntp = 2\n", "\ncp = 2\n", "\npp = 2\n"})
    EXPECT_NE(file.find(line), std::string::npos) << file;
  const Ending run =
      run_program({PENSTOCK_PROGRAM, "train", scratch / "hybrid.toml", "--ranks", "8", "--train.threads", "1",
                   "--data.validation_fraction", "0", "--train.steps", "1", "--output.dir", scratch / "run"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// Where it is simulated does not count: on a GPU the loss is taken in greater tiles.
TEST(PlanCommand, ItsRunFileSimulatedOnItsHardwareIsThePlan) {
  const Scratch scratch;
  const Ending planned = plan({"--model", "llama-7b", "--gpus", "8", "--hardware", "h100", "--seq-len",
                               "32768", "--json", "--run-file", scratch / "run.toml"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Ending simulated =
      testing::program({"simulate", scratch / "run.toml", "--hardware", "h100", "--json"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Json best = Json::parse(planned.out)["best"][0], run = Json::parse(simulated.out);
  EXPECT_EQ(run["makespan_s"], best["step_s"]);
  const Json& held = run["devices"][0]["peak_bytes_by_category"];
  EXPECT_EQ(held["records"], best["memory_bytes"]["activations"]);
  EXPECT_EQ(held["logits"], best["memory_bytes"]["logits"]);
}

// Whatever the trainer refuses of a planned run file stands in its first line, word for word.
TEST(PlanCommand, ARunFileSaysWhatTrainWouldSay) {
  const Scratch scratch;
  testing::small_run_file(scratch);
  for (const Arguments& choice : {Arguments{"--search.exchanges", "levelled"},
                                  {"--search.vocabulary_parallel", "on"},
                                  {"--search.policies", "full"}}) {
    Arguments words{kPlans + "this-machine.toml", "--workload.text", scratch / "corpus.txt",
                    "--search.schedules",         "slimpipe",        "--run-file",
                    scratch / "run.toml"};
    words.insert(words.end(), choice.begin(), choice.end());
    std::filesystem::remove(scratch / "run.toml");
    ASSERT_EQ(plan(words).exit_code, 0) << choice[0];
    const Ending train = run_program({PENSTOCK_PROGRAM, "train", scratch / "run.toml", "--dry-run", "--ranks",
                                      "2", "--data.validation_fraction", "0"});
    const std::string said = first_line(scratch.read("run.toml"));
    if (train.exit_code == 0) {
      EXPECT_EQ(said.find("cannot run"), std::string::npos) << said;
    } else {
      ASSERT_EQ(train.complaints().size(), 1u) << train.err;
      EXPECT_EQ(said, "# the trainer cannot run this yet: " + train.complaints()[0]);
    }
  }
}

TEST(PlanCommand, APlanForAnotherProgramHasNeitherARunFileNorATimeline) {
  const Scratch scratch;
  const Arguments question{"--model",   "llama-7b", "--gpus",      "8", "--hardware", "h100",
                           "--seq-len", "4096",     "--search.tp", "1", "--engine",   "nemo"};
  const Ending refused = plan(testing::with(question, {"--run-file", scratch / "run.toml"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--run-file works only with Penstock's own trainer"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(scratch / "run.toml"));
  const Ending drawn = plan(testing::with(question, {"--report", scratch / "plan.html"}));
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::string page = scratch.read("plan.html");
  EXPECT_EQ(page.find("\"simulated\""), std::string::npos);
  EXPECT_NE(page.find("The plan is in closed form only"), std::string::npos);
}

TEST(PlanCommand, AModelWithGeluIsPlannedInClosedFormAlone) {
  const Scratch scratch;
  const Arguments question{"--model",   "gpt-22b", "--gpus",      "64", "--hardware",  "h100",
                           "--seq-len", "2048",    "--search.tp", "8",  "--search.cp", "1"};
  const Ending ending = plan(question);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("in closed form only: the model has GELU"), std::string::npos) << ending.out;
  EXPECT_EQ(ending.out.find("step, simulated"), std::string::npos) << ending.out;
  // Exchange is nearly free in closed form, so that without a simulation it is not offered.
  const Ending sliced = plan({"--model", "gpt-22b", "--gpus", "64", "--hardware", "h100", "--seq-len",
                              "32768", "--search.tp", "1", "--search.cp", "1"});
  ASSERT_EQ(sliced.exit_code, 0) << sliced.err;
  EXPECT_NE(sliced.out.find(" slimpipe n"), std::string::npos) << sliced.out;
  for (const char* exchange : {"paired", "levelled"})
    EXPECT_EQ(sliced.out.find(exchange), std::string::npos) << sliced.out;
  Arguments writing = question;
  writing.insert(writing.end(), {"--run-file", scratch / "run.toml"});
  const Ending refused = plan(writing);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--run-file needs a model with SwiGLU; model.name = \"gpt-22b\""),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace penstock::cli
