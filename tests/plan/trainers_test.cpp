// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "failure.h"
#include "plan/answer.h"
#include "plan/plan_print.h"
#include "plan/trainer_jobs.h"
#include "plan/trainers/changes.h"
#include "plan/trainers/explain.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/torchtitan.h"
#include "plan/trainers/torchtitan_question.h"

namespace penstock::plan {
namespace {

// Every candidate of a search over the trainer's space, not the best alone.
std::vector<Candidate> candidates_of(const Question& question) {
  return search(question.workload, question.cluster, space_for(*question.cluster.trainer, question.options),
                2000)
      .best;
}

TEST(Trainers, ASearchHasOnlyWhatTheTrainerCanDo) {
  for (const std::string name : {"megatron", "torchtitan"}) {
    const Question question = question_of(name);
    const std::vector<Candidate> candidates = candidates_of(question);
    ASSERT_GT(candidates.size(), 20);
    std::set<ScheduleKind> seen;
    for (const Candidate& candidate : candidates) {
      const Layout& layout = candidate.layout;
      seen.insert(layout.schedule);
      EXPECT_EQ(refusal_of(*question.cluster.trainer, question.workload, layout), std::nullopt)
          << print_layout(layout);
      EXPECT_EQ(layout.slices, 1);
      EXPECT_EQ(layout.offload, 0);
      EXPECT_FALSE(layout.vocabulary_parallel);
      EXPECT_EQ(80 % stages_of(layout), 0);
      EXPECT_EQ(layout.sharded.on, name == "torchtitan" && layout.mesh.replicas() > 1);
    }
    EXPECT_GT(seen.size(), 1);
  }
}

TEST(Trainers, WhatIsWrittenForMegatronReadsBackAsTheSameLayout) {
  const Question question = question_of("megatron");
  for (const Candidate& candidate : candidates_of(question)) {
    const Job job = job_of(question, candidate.layout);
    const Workload& again = job.question().workload;
    EXPECT_TRUE(job.not_counted().empty()) << job.not_counted().front();
    EXPECT_EQ(job.layout(), candidate.layout);
    EXPECT_EQ(again.global_batch, question.workload.global_batch);
    EXPECT_EQ(model::total_parameters(again.model.shape),
              model::total_parameters(question.workload.model.shape));
  }
}

TEST(Trainers, WhatIsWrittenForTorchtitanReadsBackAsTheSameLayout) {
  const Question question = question_of("torchtitan");
  for (const Candidate& candidate : candidates_of(question)) {
    const Job job = job_of(question, candidate.layout);
    Layout layout = job.layout();
    if (layout.mesh.pipeline == 1) layout.schedule = candidate.layout.schedule;  // there is none to write
    EXPECT_EQ(layout, candidate.layout);
    EXPECT_EQ(model::total_parameters(job.question().workload.model.shape),
              model::total_parameters(question.workload.model.shape));
  }
}

TEST(Trainers, AFileForTorchtitanSaysThatNoFlavorHasTheModelsSizes) {
  for (const auto& [model, told] :
       {std::pair{"llama3-70b", ""},
        {"llama2-70b", "# no flavor of its models has these sizes: add one"},
        {"llama-70b-gqa", "# none of its models is of this kind (tied embeddings); llama3 is the nearest"},
        {"mixtral-8x22b",
         "# none of its models is of this kind (experts, tied embeddings); llama4 is the nearest"}}) {
    Question question = question_of("torchtitan");
    question.workload.model = find_model(model);
    const Candidate candidate = candidates_of(question).front();
    const std::string text =
        print_settings(*question.cluster.trainer, {question.workload, question.cluster, {}}, candidate);
    EXPECT_NE(text.find(told), std::string::npos) << text;
    EXPECT_EQ(text.find("flavor = \"70B\"") != std::string::npos, *told == 0) << text;
  }
}

TEST(Trainers, AFileForMegatronSaysWhatOfTheModelItCannotSay) {
  Question question = question_of("megatron");
  const Candidate candidate = candidates_of(question).front();
  const auto text = [&] {
    return print_settings(*question.cluster.trainer, {question.workload, question.cluster, {}}, candidate);
  };
  EXPECT_EQ(text().find("# without"), std::string::npos) << text();
  model::Shape& shape = question.workload.model.shape;
  shape.norm_epsilon = 1e-6;
  shape.rope_theta = 5e5;
  shape.rope_scaling.factor = 8;
  for (const char* part :
       {"--norm-epsilon 1e-06", "# without model.rope_theta = 5", "# without model.rope_factor = 8"})
    EXPECT_NE(text().find(part), std::string::npos) << part;
}

TEST(Trainers, RefuseMeshesThatTheyCannotBuild) {
  const auto refusal = [](const char* name, const char* model, const mesh::Mesh& mesh, std::int64_t seq_len) {
    const Workload workload{find_model(model), seq_len, 64};
    Layout layout{.mesh = mesh, .schedule = ScheduleKind::OneFOneB};
    return refusal_of(*find_trainer(name), workload, layout).value_or("");
  };
  const mesh::Mesh folded{.tensor = 8, .expert = 8}, apart{.tensor = 2, .expert = 4, .data = 4};
  EXPECT_NE(refusal("megatron", "mixtral-8x7b", folded, 8192).find("not divisible by expert"),
            std::string::npos);
  EXPECT_EQ(refusal("megatron", "mixtral-8x7b", apart, 8192), "");
  const mesh::Mesh over_context{.tensor = 2, .context = 2, .expert = 4, .data = 2};
  EXPECT_EQ(refusal("megatron", "mixtral-8x7b", over_context, 8192), "");
  EXPECT_NE(refusal("torchtitan", "llama3-8b", {.tensor = 8, .data = 2}, 8200).find("2·t·c"),
            std::string::npos);
  EXPECT_EQ(refusal("torchtitan", "llama3-8b", {.tensor = 8, .data = 2}, 8192), "");
  for (const char* name : {"megatron", "torchtitan"})
    EXPECT_EQ(refusal(name, "llama3-8b", {.tensor = 16}, 8192),
              "8 key-value heads are not divisible by 16 tensor ranks");
  EXPECT_NE(refusal("torchtitan", "mixtral-8x7b", {.tensor = 2, .data = 4}, 8192).find("experts"),
            std::string::npos);
}

TEST(Trainers, CopiesOfAllWeightsAreTorchtitansDdpWhichIsNotPredicted) {
  const Workload workload{find_model("llama3-8b"), 8192, 64};
  const auto refusal = [&](const char* name, std::int64_t group, int replicas) {
    const Layout layout{.mesh = {.data = replicas},
                        .schedule = ScheduleKind::OneFOneB,
                        .sharded = {.on = name == std::string("torchtitan"), .group = group}};
    return refusal_of(*find_trainer(name), workload, layout).value_or("");
  };
  EXPECT_NE(refusal("torchtitan", 1, 8).find("DDP"), std::string::npos);
  EXPECT_EQ(refusal("torchtitan", 2, 8), "");
  EXPECT_EQ(refusal("torchtitan", 1, 1), "");
  EXPECT_EQ(refusal("megatron", 1, 8), "") << "without its distributed optimizer";
}

TEST(Trainers, WhereTheTrainerRefusesAllThatIsLegalItsReasonIsTold) {
  Question question = question_of("megatron", {"--search.tp=8"});
  question.workload.model.shape.kv_heads = 4;
  const SearchResult found =
      search(question.workload, question.cluster, space_for(*question.cluster.trainer, question.options));
  EXPECT_GT(found.rejected[static_cast<std::size_t>(Rejection::Trainer)], 0);
  EXPECT_EQ(found.judged(), 0);
  const std::string said = failure<NoAnswer>([&] { require_answer(answer(question)); });
  EXPECT_EQ(said, "nothing can be run: 4 key-value heads are not divisible by 8 tensor ranks");
}

// Only the closed form knows other programs, and its exchange is rough.
TEST(Trainers, ExchangeIsNotPlannedWhereNothingIsSimulated) {
  for (const auto& [engine, word] :
       {std::pair{"nemo", "--search.best=10"}, {"penstock", "--search.simulate=0"}}) {
    const Question alone = question_of(engine, {word, "--search.exchanges=paired"});
    const std::string said = failure<InputError>([&] { answer(alone); });
    EXPECT_TRUE(said.starts_with("search.exchanges = [\"paired\"]: ")) << said;
    for (const Candidate& candidate : answer(question_of(engine, {word, "--search.tp=8"})).result.best)
      EXPECT_EQ(candidate.layout.exchange, ExchangeMode::Off) << print_layout(candidate.layout);
  }
}

TEST(Trainers, TensorRanksCutTheExpertsOfMegatronAndNotThoseOfTorchtitan) {
  for (const std::string name : {"megatron", "torchtitan"}) {
    Question question = question_of(name);
    question.workload.model = find_model("mixtral-8x7b");
    const model::Shape& shape = question.workload.model.shape;
    Layout layout{.mesh = {.tensor = 8, .expert = 8, .data = 8}, .schedule = ScheduleKind::OneFOneB};
    layout.keep = model::keep_of(model::Policy::None);
    adapt(question.cluster, layout);
    const bool cut = name == "megatron";
    EXPECT_EQ(question.cluster.engine.folded_experts, !cut);
    EXPECT_EQ(parameters_on_device(question.workload, layout, 1, 0).expert,
              static_cast<double>(model::expert_parameters(shape)) / (cut ? 8 : 1));
    Layout other = layout;
    other.cut_experts = !cut;
    const model::MemoryPeaks memory = layout_memory(question.workload, layout).front(),
                             others = layout_memory(question.workload, other).front();
    EXPECT_EQ(memory.optimizer, others.optimizer) << "shared out over as many ranks either way";
    EXPECT_EQ(memory.gradients < others.gradients, cut);
    // Parts of an expert have its inputs whole: two rows a token, of 1024 tokens of a rank.
    const double inputs = 7 * 2 * 2.0 * 4096 * 1024;
    EXPECT_NEAR(record_size(question.workload, layout, 1).leaving,
                record_size(question.workload, other, 1).leaving + (cut ? inputs : -inputs), 1);
  }
}

TEST(Trainers, OnlyPenstocksOwnStepIsSimulated) {
  for (const std::string engine : {"penstock", "nemo"}) {
    const Plan plan = answer_for_layout(question_of(
        engine, {"--layout.schedule=1f1b", "--layout.tp=8", "--layout.pp=4", "--memory.offload=0"}));
    EXPECT_EQ(plan.result.best.front().simulated.has_value(), engine == "penstock") << engine;
  }
}

TEST(Trainers, AnEngineFilesMemoryHasTheStatesAndExpertsThatItsTimeHas) {
  const Question question = question_of("megatron-2021");
  const Cluster& cluster = question.cluster;
  Layout layout{.mesh = {.tensor = 8, .data = 8}, .schedule = ScheduleKind::OneFOneB};
  adapt(cluster, layout);
  Layout alone = layout;
  alone.mesh.data = 1;
  const auto bytes = [&](const Layout& of) { return layout_memory(question.workload, of).front().optimizer; };
  const auto seconds = [&](const Layout& of) {
    return step_cost(question.workload, of, cluster.hardware, cluster.engine).optimizer;
  };
  EXPECT_EQ(bytes(layout), bytes(alone)) << "no replica leaves states to another";
  EXPECT_DOUBLE_EQ(seconds(layout), seconds(alone));
  Workload experts = question.workload;
  experts.model = find_model("mixtral-8x7b");
  layout.mesh.expert = 8;
  EXPECT_EQ(parameters_on_device(experts, layout, 1, 0).expert,
            static_cast<double>(model::expert_parameters(experts.model.shape)) / 8);
}

// As `explain` has them: whole experts fold into the tensor ranks.
TEST(Trainers, APlanForTorchtitanHasExpertRanksAmongTheTensorRanks) {
  Question question = question_of("torchtitan");
  question.workload.model = find_model("mixtral-8x7b");
  const Layout layout{.mesh = {.tensor = 4, .expert = 8, .data = 2}, .schedule = ScheduleKind::OneFOneB};
  EXPECT_EQ(reject(question.workload, layout, 8, question.cluster.engine.folded_experts), std::nullopt);
  EXPECT_EQ(refusal_of(*question.cluster.trainer, question.workload, layout), std::nullopt);
}

TEST(Trainers, NoConfigurationIsWrittenOfAModelWithGelu) {
  for (const std::string name : {"megatron", "torchtitan"}) {
    Question question = question_of(name);
    question.workload.model = find_model("gpt-22b");
    const std::string said =
        failure<InputError>([&] { settings_of(*question.cluster.trainer, question.workload, Layout{}); });
    EXPECT_NE(said.find("model.name = \"gpt-22b\" has GELU"), std::string::npos) << said;
  }
}

TEST(Trainers, SharedStatesTakeSixteenBytesAParameterOverAllDevices) {
  const Question question = question_of("torchtitan");
  const auto parameters = static_cast<double>(model::total_parameters(question.workload.model.shape));
  for (const int replicas : {64, 32, 8}) {
    Layout layout;
    layout.mesh = {.tensor = kAskedGpus / replicas, .data = replicas};
    layout.schedule = ScheduleKind::OneFOneB;
    adapt(question.cluster, layout);
    const model::MemoryPeaks memory = layout_memory(question.workload, layout).front();
    EXPECT_NEAR(static_cast<double>(memory.optimizer) * kAskedGpus / parameters, 8, 0.1) << replicas;
    // f32 weights and gradients as well; the gathered weights of a layer and of the output matrix, which is
    // the largest unit, and its gradients come on top.
    const model::Shape& shape = question.workload.model.shape;
    const double layer = static_cast<double>(model::layer_parameters(shape)) / layout.mesh.tensor;
    const double output = static_cast<double>(shape.vocab * shape.hidden) / layout.mesh.tensor;
    EXPECT_NEAR(static_cast<double>(memory.weights + memory.gradients) - 8 * parameters / kAskedGpus,
                2 * (layer + output) + 4 * output, 0.02 * 8 * layer)
        << replicas;
  }
}

TEST(Trainers, EachNearestChangeHelpsAndIsOfThatTrainer) {
  const Question question = question_of(
      "megatron", {"--layout.tp=8", "--layout.pp=8", "--layout.schedule=1f1b", "--layout.policy=full"});
  const Plan plan = answer_for_layout(question);
  const Candidate& today = plan.result.best.front();
  const std::vector<Change> changes = nearest_changes(job_of(question, today.layout), today);
  ASSERT_EQ(changes.size(), 3);
  for (const Change& change : changes) {
    EXPECT_LT(change.candidate.step(), today.step());
    EXPECT_TRUE(change.candidate.memory.fits);
    EXPECT_EQ(refusal_of(*question.cluster.trainer, question.workload, change.candidate.layout),
              std::nullopt);
    EXPECT_NE(change.text.find("--"), std::string::npos);
  }
  EXPECT_LE(changes[0].candidate.step(), changes[1].candidate.step());
}

TEST(Trainers, AConfigurationOfTodayIsExplained) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  const Explained explained = explain_configuration(
      {.megatron =
           "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --swiglu \\\n"
           "--group-query-attention --num-query-groups 8 --vocab-size 128256 --seq-length 8192 "
           "--micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 8 --sequence-parallel "
           "--pipeline-model-parallel-size 8 --bf16",
       .gpus = kAskedGpus});
  EXPECT_TRUE(explained.fits);
  for (const char* part : {"matrix products", "what limits it", "what would help", "device 0"})
    EXPECT_NE(explained.text.find(part), std::string::npos) << part;
}

TEST(Trainers, WhatATrainerHasNotIsRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"--search.schedules=slimpipe",
       "search.schedules: megatron does not support slimpipe; expected 1f1b, interleaved"},
      {"--search.policies=balanced",
       "search.policies: megatron does not support balanced; expected none, full"},
      {"--search.slices=4", "search.slices: megatron does not support 4 slices; expected whole sequences: 1"},
      {"--search.exchanges=paired", "search.exchanges: megatron does not support paired; expected off"},
      {"--memory.offload=0.5", "megatron is planned without offloading"}};
  for (const auto& [word, expected] : cases) {
    const Question question = question_of("megatron", {word});
    const std::string said = failure<InputError>([&] { answer(question); });
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  }
}

TEST(Trainers, ALayoutHasOnlyWhatTheTrainerCanDo) {
  const auto refused = [](const std::vector<std::string>& layout) {
    return failure<InputError>([&] { answer_for_layout(question_of("megatron", layout)); });
  };
  const std::vector<std::string> good{"--layout.schedule=1f1b", "--layout.tp=8", "--layout.pp=4"};
  const auto with = [&](const std::string& word) {
    std::vector<std::string> words = good;
    words.push_back(word);
    return words;
  };
  const Plan plan = answer_for_layout(question_of("megatron", good));
  EXPECT_EQ(plan.result.best.front().layout.offload, 0);
  EXPECT_NE(refused({"--layout.tp=8"}).find("slimpipe, the default; expected 1f1b, interleaved"),
            std::string::npos);
  EXPECT_NE(refused(with("--layout.policy=balanced")).find("layout.policy"), std::string::npos);
  EXPECT_NE(refused(with("--layout.slices=2")).find("layout."), std::string::npos);
  EXPECT_NE(refused(with("--layout.vocabulary_parallel=true")).find("layout.vocabulary"), std::string::npos);
  EXPECT_NE(refused(with("--memory.offload=0.5")).find("memory.offload"), std::string::npos);
  EXPECT_NE(refused({"--layout.schedule=interleaved", "--layout.chunks=2", "--layout.tp=8", "--layout.pp=2"})
                .find("several stages a device"),
            std::string::npos);
}

TEST(Trainers, WhatWouldFitIsWhatTheTrainerCanDo) {
  const Question question =
      question_of("megatron", {"--layout.schedule=1f1b", "--layout.tp=2", "--layout.pp=4"});
  const Plan plan = answer_for_layout(question);
  ASSERT_FALSE(plan.result.best.front().memory.fits);
  const std::string ways = what_would_fit(question.workload, question.cluster, plan.result.best.front());
  EXPECT_EQ(ways.find("offload"), std::string::npos) << ways;
  EXPECT_EQ(ways.find("balanced"), std::string::npos) << ways;
}

}  // namespace
}  // namespace penstock::plan
