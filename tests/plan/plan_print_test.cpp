// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_print.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/answer.h"
#include "plan/search.h"
#include "plan/simulated_step.h"
#include "questions.h"

namespace penstock::plan {
namespace {

Question asked_by(std::vector<std::string> words) {
  words.insert(words.end(),
               {"--model.name=", "--cluster.hardware=" PENSTOCK_SOURCE_DIR "/hardware/h100.toml"});
  return read_question("", words);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Four stages of one layer each: the output layer makes the last one's forward twice as long.
const std::vector<std::string> kUneven{
    "--model.layers=4",     "--model.hidden=1024",     "--model.ffn=2816",          "--model.heads=8",
    "--model.vocab=128000", "--workload.seq_len=4096", "--workload.global_batch=8", "--cluster.gpus=4",
    "--layout.pp=4",        "--layout.schedule=1f1b"};

TEST(PlanPrint, TheBubbleOfASimulatedStepIsTheSimulations) {
  const Plan plan = answer_for_layout(asked_by(kUneven));
  const Candidate& candidate = plan.result.best.front();
  const SimulatedStep step = simulate_step(plan.workload, plan.cluster, candidate.layout).value();
  ASSERT_GT(step.result.bubble_fraction, 1.1 * candidate.cost.bubble_fraction());
  EXPECT_TRUE(has(print_plan_json(plan), "\"bubble_fraction\":" + exact_number(step.result.bubble_fraction)));
  EXPECT_TRUE(has(print_plan(plan), percent(step.result.bubble_fraction))) << print_plan(plan);
}

TEST(PlanPrint, SmallFiguresKeepTwoDigits) {
  Question question = asked_by(kUneven);
  question.workload.model.shape = {
      .layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 300};
  const Plan plan = answer_for_layout(question);
  for (const std::string& text :
       {print_plan(plan), explain(plan.workload, plan.cluster, plan.result.best[0])}) {
    EXPECT_TRUE(has(text, " weights 0.00")) << text;
    for (const char* lost : {"0.00 ", "0.00;", "0.01 "})
      EXPECT_FALSE(has(text, lost)) << lost << "in " << text;
  }
}

TEST(PlanPrint, TheAttentionKernelsAreThoseOfTheCost) {
  Question question = asked_by(kUneven);
  question.cluster.hardware.measured = {};
  const auto explained = [&](const char* engine, double fa3, double cudnn) {
    question.cluster.engine.attention = engine;
    question.cluster.hardware.efficiency.attention_fa3 = fa3;
    question.cluster.hardware.efficiency.attention_cudnn = cudnn;
    const Plan plan = answer_for_layout(question);
    const std::string text = explain(plan.workload, plan.cluster, plan.result.best[0]);
    const std::size_t row = text.find("  attention kernels");
    return std::string(trim(text.substr(row + 19, text.find('\n', row) - row - 19)));
  };
  EXPECT_EQ(explained("fa2", 0.6, 0.5), "fa2");
  EXPECT_EQ(explained("fa3", 0.6, 0.5), "fa3");
  EXPECT_EQ(explained("fa3", 0, 0.5), "cudnn");
  EXPECT_EQ(explained("fa3", 0, 0), "fa2");
  EXPECT_EQ(explained("plain", 0.6, 0.5), "plain");
}

TEST(PlanPrint, OnlyLegalCountsOfSlicesAreOffered) {
  Plan plan{workload("llama2-7b", 8192, 8), cluster(8), {}};
  plan.result.candidates = 1;
  plan.result.rejected[static_cast<std::size_t>(Rejection::Tokens)] = 1;
  EXPECT_TRUE(has(print_nearest_miss(plan), "by 1, 2, 4, 8, 16, 32 (at most 32 slices of 256 tokens)"))
      << print_nearest_miss(plan);
  plan.workload.seq_len = 100;
  EXPECT_TRUE(has(print_nearest_miss(plan), "by 1, 2, 4, 5, 10, 20, 25, 50, 100 (in one slice: "))
      << print_nearest_miss(plan);
}

TEST(PlanPrint, ALimitAboveTheDevicesMemoryIsShownBesideIt) {
  std::vector<std::string> words = kUneven;
  words.emplace_back("--memory.limit=200GB");
  EXPECT_TRUE(has(print_plan(answer_for_layout(asked_by(words))), "200.0 GB a device (it has 80.0), engine"));
  words.back() = "--memory.limit=70GB";
  EXPECT_TRUE(has(print_plan(answer_for_layout(asked_by(words))), "70.0 GB a device, engine"));
}

TEST(PlanPrint, NothingIsRejectedOrSearchedForOneLayout) {
  Plan plan = answer_for_layout(asked_by(kUneven));
  EXPECT_FALSE(has(print_plan(plan), "Rejected"));
  EXPECT_TRUE(has(print_plan_json(plan), "\"candidates_per_s\":0}"));
  plan.result.rejected[0] = 1;
  EXPECT_TRUE(has(print_plan(plan), "Rejected\n  1"));
}

TEST(PlanJson, HasTheKeysThatScriptsRelyOn) {
  Plan plan{workload("llama-70b-gqa", 131072, 32), cluster(128), {}};
  plan.result = search(plan.workload, plan.cluster, {}, 2);
  const std::string json = print_plan_json(plan);
  for (const char* key : {"candidates", "rejected", "best", "search_s", "tp", "cp", "ep", "pp", "dp",
                          "chunks", "slices", "schedule", "policy", "offload_ratio", "step_s",
                          "tokens_per_s_per_gpu", "mfu", "peak_bytes", "host_bytes"}) {
    EXPECT_NE(json.find("\"" + std::string(key) + "\":"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace penstock::plan
