// SPDX-License-Identifier: Apache-2.0
// Arguments of Megatron-LM: what is read of them, what it does to time and memory, and what is refused.
#include "plan/trainers/megatron.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "failure.h"
#include "plan/answer.h"
#include "plan/trainers/changes.h"
#include "plan/trainers/explain.h"

namespace penstock::plan {
namespace {

constexpr int kGpus = 64;

PlanOptions asked() {
  PlanOptions options;
  options.cluster = {.hardware = "h100", .gpus = kGpus, .engine = "megatron"};
  options.memory.offload = {0, ""};
  return options;
}

struct Read {
  std::string text;
  Beyond beyond;
  Question question;
  Candidate candidate;

  Job job() const { return Job({.megatron = text, .gpus = kGpus}); }
  const StepCost& cost() const { return candidate.cost; }
  const model::MemoryPeaks& memory() const { return candidate.memory.fullest; }
};

// A Llama 3 70B over 8 tensor and 4 pipeline ranks, two replicas of them.
Read read_arguments(const std::string& more, const std::string& sequence_parallel = "--sequence-parallel ") {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  PlanOptions options = asked();
  Read read;
  read.text =
      "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --swiglu "
      "--group-query-attention --num-query-groups 8 --vocab-size 128256 --seq-length 8192 --micro-batch-size "
      "1 "
      "--global-batch-size 128 --tensor-model-parallel-size 8 "
      "--pipeline-model-parallel-size 4 --untie-embeddings-and-output-weights --bf16 " +
      sequence_parallel + more;
  read.beyond = read_megatron(MegatronArguments(read.text), options);
  read.question = settled(options, "");
  apply(read.beyond, read.question.cluster.engine);
  Layout layout = layout_of(options, read.question.workload, read.question.cluster);
  apply(read.beyond, read.question.workload, layout);
  adapt(read.question.cluster, layout);
  read.candidate = answer_for_layout(read.question, layout).result.best.front();
  return read;
}

const std::string kShared = "--use-distributed-optimizer ";
const std::string kFull = kShared + "--recompute-granularity full --recompute-method ";

TEST(Megatron, ArgumentsThatContradictEachOtherAreNamedAsTheTrainerNamesThem) {
  const std::string good =
      "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --swiglu --vocab-size 32000 --seq-length "
      "8192 "
      "--micro-batch-size 1 --global-batch-size 128 --bf16 ";
  const std::pair<std::string, std::string> cases[] = {
      {"--fp16", "--fp16 and --bf16 are both given"},
      {"--tensor-model-parallel-size 3 --sequence-parallel",
       "world size (64) is not divisible by tensor parallel size (3) times pipeline "
       "parallel size (1) times context parallel size (1)"},
      {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4",
       "pipeline-model-parallel size should be greater than 2 with interleaved schedule, got 2"},
      {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
       "number of layers per pipeline stage must be divisible by it"},
      {"--recompute-granularity selective --recompute-method uniform",
       "recompute method is not yet supported for selective recomputing granularity"},
      {"--recompute-granularity most",
       "--recompute-granularity most is not predicted; expected full or selective"},
      {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 4",
       "--recompute-num-layers 4 is not predicted"},
      {"--num-experts 8 --tensor-model-parallel-size 8",
       "When using MoE and tensor parallelism, sequence parallelism must be used"},
      {"--num-experts 8 --expert-model-parallel-size 3",
       "Number of experts should be a multiple of expert model parallel_size"},
      {"--expert-model-parallel-size 4", "num_experts must be non None to use expert model parallelism"},
      {"--num-experts 8 --expert-model-parallel-size 8 --pipeline-model-parallel-size 16",
       "data-parallel size times --context-parallel-size, 4 is not divisible by --expert-model-parallel-size "
       "8"},
      {"--num-layers 8 --pipeline-model-parallel-size 16",
       "--pipeline-model-parallel-size 16 is more than --num-layers 8"},
      {"--num-experts 8 --moe-router-topk 9", "--moe-router-topk 9 is more than --num-experts 8"},
      {"--optimizer sgd", "--optimizer sgd is not predicted; expected adam"},
      {"--transformer-impl local", "--transformer-impl local is not predicted; expected transformer_engine"},
      {"--fp8-format hybrid", "--fp8-format is not predicted: products in 8 bits"},
      {"--moe-layer-recompute", "--moe-layer-recompute is not predicted"},
      {"--batch-size 4", "an argument of older versions"},
      {"--recompute-method uniform", "--recompute-method needs --recompute-granularity full"},
      {"--recompute-granularity full", "needs --recompute-method uniform or block"},
      {"--overlap-param-gather", "needs --use-distributed-optimizer and --overlap-grad-reduce"},
      {"--num-query-groups 8", "has no effect without --group-query-attention"},
      {"--micro-batch-size 3", "--global-batch-size 128 is not divisible by --micro-batch-size"},
      {"--micro-batch-siz 3", "did you mean --micro-batch-size?"},
      {"--micro-batch-size two", "--micro-batch-size two: expected a whole number"},
      {"--micro-batch-size", "--micro-batch-size has no value"},
      {"--bf16=yes", "--bf16 takes no value"}};
  PlanOptions options = asked();
  read_megatron(MegatronArguments(good), options);
  for (const auto& [more, expected] : cases) {
    PlanOptions other = asked();
    const std::string said =
        failure<InputError>([&] { read_megatron(MegatronArguments(good + more), other); });
    EXPECT_NE(said.find(expected), std::string::npos) << more << ": " << said;
  }
}

TEST(Megatron, SizesThatDoNotDivideAreNamedAsTheirArguments) {
  const auto said = [](const std::string& hidden, const std::string& more) {
    PlanOptions options = asked();
    options.cluster.gpus = 48;
    return failure<InputError>([&] {
      read_megatron(
          MegatronArguments(
              "--num-layers 80 --num-attention-heads 64 --swiglu --vocab-size 32000 --seq-length 8192 "
              "--micro-batch-size 1 --sequence-parallel --bf16 --hidden-size " +
              hidden + " " + more),
          options);
    });
  };
  EXPECT_EQ(said("8192", ""), "");
  EXPECT_EQ(said("8193", ""), "--hidden-size 8193 is not divisible by --num-attention-heads 64");
  EXPECT_EQ(said("8193", "--kv-channels 128"), "");
  EXPECT_EQ(said("8192", "--group-query-attention --num-query-groups 6"),
            "--num-attention-heads 64 is not divisible by --num-query-groups 6");
  EXPECT_EQ(said("8192", "--tensor-model-parallel-size 3"),
            "--num-attention-heads 64 is not divisible by --tensor-model-parallel-size 3");
  EXPECT_EQ(said("8192", "--group-query-attention --num-query-groups 4 --tensor-model-parallel-size 8"),
            "--num-query-groups 4 is not divisible by --tensor-model-parallel-size 8");
  EXPECT_EQ(said("8192", "--context-parallel-size 3"),
            "--seq-length 8192 is not divisible by twice --context-parallel-size, 6");
}

TEST(Megatron, BlocksOfLayersAreRecomputedInEachStage) {
  const Read none = read_arguments(kShared), full = read_arguments(kFull + "uniform");
  for (const int layers : {1, 5, 19, 20, 40}) {
    const Read some = read_arguments(kFull + "block --recompute-num-layers " + std::to_string(layers));
    const double share = std::min(layers, 20) / 20.0;
    EXPECT_NEAR(some.cost().recomputation, share * full.cost().recomputation, 1e-9);
    EXPECT_NEAR(static_cast<double>(some.memory().activations),
                share * static_cast<double>(full.memory().activations) +
                    (1 - share) * static_cast<double>(none.memory().activations),
                2);
  }
}

TEST(Megatron, WhereAStageIsOneLayerNoPartOfItIsProposed) {
  const Read read = read_arguments(kFull + "uniform --num-layers-per-virtual-pipeline-stage 1");
  for (const Change& change : nearest_changes(read.job(), read.candidate, 50))
    EXPECT_EQ(change.text.find("--recompute-num-layers 0"), std::string::npos) << change.text;
}

// The arguments with those of a change, as a user would write them.
std::string applied(std::string arguments, const std::string& change) {
  constexpr std::string_view kWithout = "without ";
  for (const std::string_view part : split(change, ',')) {
    const std::string_view words = trim(part);
    if (!words.starts_with(kWithout)) {
      arguments += " " + std::string(words);
      continue;
    }
    const std::string name = " " + std::string(words.substr(kWithout.size()));
    const std::size_t begin = (arguments + " ").find(name + " ");
    if (begin == std::string::npos) throw std::logic_error(arguments + " lacks" + name);
    arguments.erase(begin, arguments.find(" --", begin + 1) - begin);
  }
  return arguments;
}

// Counts of layers are rounded, the global batch follows from other sizes, and a pipeline of one has no
// schedule: what is said of a change is what the job is with it.
TEST(Megatron, ArgumentsWithAChangeAreExplainedAsItSays) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  const std::string sizes =
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu --vocab-size 32000 --seq-length "
      "4096 --bf16 --use-distributed-optimizer ";
  int applied_changes = 0;
  for (const std::string job :
       {"--micro-batch-size 4 --tensor-model-parallel-size 2",
        "--micro-batch-size 1 --pipeline-model-parallel-size 8 --global-batch-size 256 "
        "--recompute-granularity "
        "full --recompute-method block --recompute-num-layers 1",
        "--micro-batch-size 2 --pipeline-model-parallel-size 8 --global-batch-size 256 "
        "--num-layers-per-virtual-pipeline-stage 4 --recompute-granularity full --recompute-method block "
        "--recompute-num-layers 4",
        "--micro-batch-size 1 --pipeline-model-parallel-size 2 --global-batch-size 128 "
        "--recompute-activations",
        "--micro-batch-size 1 --pipeline-model-parallel-size 8 --global-batch-size 128 "
        "--recompute-granularity "
        "full --recompute-method uniform"}) {
    const Job today({.megatron = sizes + job, .gpus = kGpus});
    const Candidate candidate = answer_for_layout(today.question(), today.layout()).result.best.front();
    for (const Change& change : nearest_changes(today, candidate, 30)) {
      const std::string text = applied(sizes + job, change.text);
      const Job changed({.megatron = text, .gpus = kGpus});
      EXPECT_EQ(changed.layout(), change.candidate.layout) << text;
      EXPECT_EQ(changed.question().workload.global_batch, today.question().workload.global_batch) << text;
      const Plan plan = answer_for_layout(changed.question(), changed.layout());
      EXPECT_EQ(plan.result.best.front().step(), change.candidate.step()) << text;
      ++applied_changes;
    }
  }
  EXPECT_GT(applied_changes, 50);
}

TEST(Megatron, WordsThatTheTrainerDoesNotHaveAreRefused) {
  for (const char* word : {"--position-embedding-type roope", "--normalization Foo"}) {
    const std::string said = failure<InputError>([&] { read_arguments(kShared + word); });
    EXPECT_TRUE(said.starts_with(std::string(word) + " is not predicted; expected ")) << said;
  }
}

TEST(Megatron, QuotesAreThoseOfAShell) {
  const Read plain = read_arguments(kFull + "uniform");
  const Read quoted = read_arguments(
      "--use-distributed-optimizer --recompute-granularity \"full\" \\\n --recompute-method 'uniform' "
      "--tokenizer-model '/a path/x' --save \"a \\\"b\\\" c\" --load a\\ b\\'c # it's a comment");
  EXPECT_EQ(quoted.candidate.layout, plain.candidate.layout);
  EXPECT_EQ(failure<InputError>([] { MegatronArguments("--tokenizer-model '/a path"); }),
            "a quote, ', is not closed");
  EXPECT_NE(
      failure<InputError>([] { MegatronArguments(std::string("--swi\0glu", 9)); }).find("is not an argument"),
      std::string::npos)
      << "a zero byte is no quote";
}

TEST(Megatron, SelectiveRecomputationFormsAttentionAgain) {
  const Read none = read_arguments(kShared);
  for (const char* words : {"--recompute-activations", "--recompute-granularity selective"}) {
    const Read some = read_arguments(kShared + words);
    EXPECT_GT(some.cost().recomputation, 0);
    EXPECT_LT(some.cost().recomputation, 0.5 * none.cost().work.attention);
    EXPECT_EQ(some.memory().activations, none.memory().activations);
  }
}

TEST(Megatron, WithoutTheDistributedOptimizerEachReplicaHasAllStates) {
  const Read shared = read_arguments(kShared), whole = read_arguments("");
  EXPECT_NEAR(static_cast<double>(whole.memory().optimizer),
              2.0 * static_cast<double>(shared.memory().optimizer), 10);
  EXPECT_GT(whole.cost().optimizer, shared.cost().optimizer);
  EXPECT_GT(whole.cost().gradients, shared.cost().gradients);
  const std::vector<Change> changes = nearest_changes(whole.job(), whole.candidate, 30);
  EXPECT_NE(std::ranges::find(changes, "--use-distributed-optimizer", &Change::text), changes.end());
}

// The input, both norms' outputs and the second one's input are of hidden width; 8 ranks hold each whole.
TEST(Megatron, WithoutSequenceParallelismTensorRanksHoldWholeHiddenStates) {
  const Read shared = read_arguments(kShared), whole = read_arguments(kShared, "");
  const double more = 4 * 2.0 * 8192 * 7 / 8;  // bytes of a token and layer
  const double units = static_cast<double>(whole.memory().activations - shared.memory().activations) / more;
  EXPECT_NEAR(units, 8192.0 * 20 * 4, 1);  // tokens, layers of the first device, micro-batches in flight
  EXPECT_GT(whole.cost().work.elementwise, shared.cost().work.elementwise);
  const std::vector<Change> changes = nearest_changes(whole.job(), whole.candidate, 30);
  EXPECT_NE(std::ranges::find(changes, "--sequence-parallel", &Change::text), changes.end());
}

// One expert rank holds all experts of its layers, two hold half.
TEST(Megatron, MoreExpertRanksAreProposed) {
  const Read one =
      read_arguments(kFull + "uniform --recompute-num-layers 1 --num-experts 4 --moe-grouped-gemm");
  ASSERT_FALSE(one.candidate.memory.fits);
  const std::vector<Change> changes = nearest_changes(one.job(), one.candidate, 30);
  ASSERT_FALSE(changes.empty());
  EXPECT_TRUE(std::ranges::any_of(changes, [](const Change& change) {
    return change.text.find("--expert-model-parallel-size") != std::string::npos;
  }));
}

TEST(Megatron, ExpertsOneAfterAnotherTakeLonger) {
  const std::string experts = kShared + "--num-experts 8 --expert-model-parallel-size 2 --moe-router-topk 2 ";
  EXPECT_GT(read_arguments(experts).candidate.step(),
            read_arguments(experts + "--moe-grouped-gemm").candidate.step());
}

TEST(Megatron, WhatIsNotCountedIsTold) {
  const std::string none =
      "--hidden-dropout 0 --attention-dropout 0.0 --position-embedding-type rope --disable-bias-linear "
      "--normalization RMSNorm";
  EXPECT_TRUE(read_arguments(none).beyond.not_counted.empty());
  const Words told =
      read_arguments(kShared +
                     "--hidden-dropout 0.1 --tp-comm-overlap --no-rope-fusion --overlap-grad-reduce "
                     "--overlap-param-gather")
          .beyond.not_counted;
  for (const std::string begin :
       {"--hidden-dropout 0.1: masks", "--attention-dropout 0.1 (its default)",
        "--tp-comm-overlap: ", "--no-rope-fusion: slower kernels",
        "--overlap-grad-reduce: ", "--overlap-param-gather: ", "without --disable-bias-linear: biases",
        "--normalization LayerNorm (its default): predicted with RMSNorm",
        "--position-embedding-type learned_absolute (its default)"}) {
    EXPECT_TRUE(std::ranges::any_of(told, [&](const std::string& one) { return one.starts_with(begin); }))
        << begin;
  }
  const Explained explained = explain_configuration(
      {.megatron = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu --vocab-size 32000 "
                   "--seq-length 4096 --micro-batch-size 1 --bf16 --use-distributed-optimizer",
       .gpus = 8});
  EXPECT_NE(explained.text.find("not counted\n  --attention-dropout 0.1 (its default)"), std::string::npos)
      << explained.text;
}

TEST(Megatron, WhatIsReadIsWrittenAgain) {
  for (const std::string words :
       {"", "--use-distributed-optimizer", "--recompute-activations",
        "--recompute-granularity full --recompute-method block --recompute-num-layers 7"}) {
    const Read once = read_arguments(words, words.empty() ? "" : "--sequence-parallel ");
    const std::string written =
        print_megatron(megatron_settings(once.question.workload, once.candidate.layout));
    PlanOptions options = asked();
    const Beyond beyond = read_megatron(MegatronArguments(written), options);
    Layout layout = layout_of(options, once.question.workload, once.question.cluster);
    apply(beyond, once.question.workload, layout);
    adapt(once.question.cluster, layout);
    EXPECT_EQ(layout, once.candidate.layout) << written;
  }
}

}  // namespace
}  // namespace penstock::plan
