// SPDX-License-Identifier: Apache-2.0
// What plans for other trainers choose beyond meshes and schedules.
#include "plan/trainer_choices.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/answer.h"
#include "plan/trainer_jobs.h"
#include "plan/trainers/changes.h"

namespace penstock::plan {
namespace {

struct Asked {
  const char* trainer;
  std::vector<std::string> words;
};

// Small and large models, short and long sequences, with memory to spare and without.
std::vector<Asked> questions() {
  std::vector<Asked> asked;
  for (const char* trainer : {"megatron", "torchtitan"}) {
    for (const char* limit : {"80GB", "60GB", "48GB"}) {
      const std::string memory = "--memory.limit=" + std::string(limit);
      asked.push_back({trainer, {memory}});
      asked.push_back({trainer, {memory, "--workload.seq_len=32768", "--workload.global_batch=32"}});
      asked.push_back({trainer, {memory, "--model.name=llama3-8b", "--cluster.gpus=16"}});
      asked.push_back(
          {trainer, {memory, "--model.name=llama3-8b", "--workload.seq_len=65536", "--cluster.gpus=32"}});
    }
  }
  return asked;
}

TEST(TrainerChoices, ExplainKnowsNothingFasterThanThePlan) {
  int in_parts = 0;
  for (const Asked& asked : questions()) {
    const Question question = question_of(asked.trainer, asked.words);
    const Plan plan = answer(question);
    if (plan.result.best.empty()) continue;
    const Layout& layout = plan.result.best.front().layout;
    const Job job = job_of(question, layout);
    const Candidate today = answer_for_layout(job.question(), job.layout()).result.best.front();
    for (const Change& change : nearest_changes(job, today, 2)) {
      ADD_FAILURE() << asked.trainer << " " << print_layout(layout) << " " << today.step() << ": "
                    << change.text << " " << change.candidate.step();
    }
    in_parts += layout.recomputed < 1;
  }
  EXPECT_GT(in_parts, 2);
}

TEST(TrainerChoices, AreWrittenReadAndPrinted) {
  const Question question = question_of("torchtitan", {"--model.name=llama3-8b"});
  Layout layout;
  layout.mesh.data = 64;
  layout.schedule = ScheduleKind::OneFOneB;
  int choices = 0;
  std::set<std::string> printed;
  for (Layout part : partly_recomputed(*question.cluster.trainer, question.workload, layout)) {
    for (const ShardedWeights& sharding : shardings_to_try(*question.cluster.trainer, layout)) {
      part.sharded = sharding;
      adapt(question.cluster, part);
      EXPECT_EQ(job_of(question, part).layout(), part) << print_layout(part);
      printed.insert(print_layout(part));
      ++choices;
    }
  }
  EXPECT_GT(choices, 100);
  EXPECT_EQ(printed.size(), choices);
}

TEST(TrainerChoices, TorchtitanCompilesUnlessToldNotTo) {
  const auto layout = [](const Question& question) {
    Layout made;
    made.mesh.data = 64;
    made.schedule = ScheduleKind::OneFOneB;
    made.keep = model::keep_of(model::Policy::None);
    adapt(question.cluster, made);
    return made;
  };
  const auto step = [&](const Question& question) {
    return answer_for_layout(question, layout(question)).result.best.front().step();
  };
  const Question compiled = question_of("torchtitan", {}),
                 eager = question_of("torchtitan", {"--cluster.compile=false"});
  EXPECT_LT(step(compiled), step(eager));
  for (const Question* question : {&compiled, &eager}) {
    const Job job = job_of(*question, layout(*question));
    EXPECT_EQ(answer_for_layout(job.question(), job.layout()).result.best.front().step(), step(*question));
  }
  EXPECT_EQ(step(question_of("megatron", {})), step(question_of("megatron", {"--cluster.compile=false"})));
}

// The first change of the job at the same layout; empty if there is none.
std::string faster_engine(const Today& today) {
  const Job job(today);
  const Candidate candidate = answer_for_layout(job.question(), job.layout()).result.best.front();
  for (const Change& change : nearest_changes(job, candidate, 100)) {
    if (change.candidate.layout == candidate.layout) return change.text;
  }
  return "";
}

TEST(TrainerChoices, ExplainProposesFusedAndGroupedWork) {
  const std::string job =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n";
  for (const auto& [compile, told] : {std::pair{"", "compile.enable = true"},
                                      {"[compile]\nenable = true\n", ""},
                                      {"[compile]\nenable = false\ncomponents = [\"loss\"]\n",
                                       "compile.enable = true, compile.components = [\"model\", \"loss\"]"},
                                      {"[compile]\nenable = true\ncomponents = [\"loss\"]\n",
                                       "compile.components = [\"model\", \"loss\"]"}})
    EXPECT_EQ(faster_engine({.torchtitan = job + compile, .origin = "job.toml", .gpus = 64}), told)
        << compile;
  const std::string dense =
      "--num-layers 16 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 2048 --swiglu "
      "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 "
      "--vocab-size 32000 --bf16 --use-distributed-optimizer";
  const std::string experts = dense + " --num-experts 64 --moe-router-topk 8 --expert-model-parallel-size 8";
  for (const auto& [arguments, told] :
       {std::pair{dense, ""}, {experts, "--moe-grouped-gemm"}, {experts + " --moe-grouped-gemm", ""}})
    EXPECT_EQ(faster_engine({.megatron = arguments, .gpus = 64}), told) << arguments;
}

TEST(TrainerChoices, PoliciesThatAreAskedForAreTheOnlyOnes) {
  const Question question = question_of("torchtitan", {"--search.policies=full"});
  for (const Candidate& candidate : answer(question).result.best) {
    EXPECT_EQ(candidate.layout.keep, model::keep_of(model::Policy::Full));
    EXPECT_EQ(candidate.layout.recomputed, 1);
  }
}

}  // namespace
}  // namespace penstock::plan
