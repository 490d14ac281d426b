// SPDX-License-Identifier: Apache-2.0
// Job files of torchtitan: what is read of them, what it does to time and memory, and what is refused.
#include "plan/trainers/torchtitan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "plan/answer.h"
#include "plan/trainers/changes.h"
#include "plan/trainers/explain.h"
#include "plan/trainers/torchtitan_question.h"

namespace penstock::plan {
namespace {

const std::string kModel = "[model]\nname = \"llama3\"\nflavor = \"70B\"\n";

struct TitanRead {
  Job job;
  Candidate candidate;

  double gigabytes() const { return static_cast<double>(candidate.memory.fullest.total()) / 1e9; }
  const StepCost& cost() const { return candidate.cost; }
};

TitanRead read_job(const std::string& text, std::int64_t gpus = 64) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  TitanRead read{Job({.torchtitan = text, .origin = "job.toml", .gpus = gpus}), {}};
  read.candidate = answer_for_layout(read.job.question(), read.job.layout()).result.best.front();
  return read;
}

TitanRead parallel(const std::string& keys, const std::string& more = "", std::int64_t gpus = 64) {
  return read_job(kModel + "[training]\nlocal_batch_size = 8\nseq_len = 8192\n[parallelism]\n" + keys + more,
                  gpus);
}

TitanRead recomputing(const std::string& mode, const std::string& option = "2",
                      const std::string& keys = "") {
  return parallel(
      "tensor_parallel_degree = 8\n" + keys,
      "[activation_checkpoint]\nmode = \"" + mode + "\"\nselective_ac_option = \"" + option + "\"\n");
}

std::string job_refusal(const std::string& text, std::int64_t gpus = 64) {
  try {
    read_job(text, gpus);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::int64_t activations(const TitanRead& read) { return read.candidate.memory.fullest.activations; }

TEST(Torchtitan, EveryNthLayerRecomputesThatShareOfTheLayers) {
  const TitanRead none = recomputing("none"), full = recomputing("full");
  EXPECT_EQ(none.cost().recomputation, 0);
  for (const int every : {1, 2, 3, 4, 7, 80}) {
    const TitanRead some = recomputing("selective", std::to_string(every));
    const double share = static_cast<double>(80 / every) / 80;
    EXPECT_NEAR(some.cost().recomputation, share * full.cost().recomputation, 1e-9) << every;
    EXPECT_NEAR(activations(some), share * activations(full) + (1 - share) * activations(none), 2) << every;
  }
  EXPECT_EQ(recomputing("selective", "0").job.layout(), full.job.layout());  // as torchtitan: each layer
}

TEST(Torchtitan, EachDeviceOfAPipelineCountsItsOwnLayers) {
  const TitanRead some = recomputing("selective", "3", "pipeline_parallel_degree = 8\n");
  EXPECT_EQ(device_layers(some.job.question().workload, some.job.layout(), 1),
            11);  // of 82 counted layers 11, 11, 10, ...
  EXPECT_NEAR(some.job.layout().recomputed, 3.0 / 11, 1e-12);
}

// By hand, of a Llama 3 8B: kept are the layer's input, and the outputs of wq, wv, attention, w1 and w2.
TEST(Torchtitan, RecomputationByOperationKeepsEverySecondProduct) {
  const std::string text =
      "[model]\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
      "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n";
  const TitanRead op = read_job(text, 8);
  const double numbers = 4 * 4096 + 1024 + 14336;
  EXPECT_NEAR(static_cast<double>(activations(op)) / (2.0 * 8192 * 32), numbers, 0.04 * numbers);
  const TitanRead again = recomputing("selective", "op"), full = recomputing("full"),
                  none = recomputing("none");
  EXPECT_LT(activations(again), activations(none));
  EXPECT_GT(activations(again), activations(full));
  EXPECT_LT(again.cost().recomputation, full.cost().recomputation);
  EXPECT_GT(again.cost().recomputation, 0.25 * full.cost().recomputation);
}

TEST(Torchtitan, CopiesOfShardedStatesTakeTheirBytesAndSumTheirGradientsOverAll) {
  const TitanRead one = parallel("tensor_parallel_degree = 2\n");
  for (const int copies : {2, 4, 8}) {
    const TitanRead some = parallel(
        "tensor_parallel_degree = 2\ndata_parallel_replicate_degree = " + std::to_string(copies) + "\n");
    EXPECT_EQ(some.job.layout().sharded.group * copies, 32);
    EXPECT_NEAR(static_cast<double>(some.candidate.memory.fullest.optimizer),
                copies * static_cast<double>(one.candidate.memory.fullest.optimizer), 10);
    EXPECT_GT(some.candidate.memory.fullest.weights, one.candidate.memory.fullest.weights);
    EXPECT_NE(some.cost().gradients, one.cost().gradients);
  }
  // A group in a node gathers over its own network alone.
  const TitanRead in_node = parallel("data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 8\n");
  EXPECT_LT(in_node.cost().gradients, parallel("").cost().gradients);
}

TEST(Torchtitan, WeightsThatStayGatheredTakeMemoryAndSaveTraffic) {
  for (const std::string pipeline : {"", "pipeline_parallel_degree = 4\n"}) {
    const TitanRead always = parallel(pipeline + "fsdp_reshard_after_forward = \"always\"\n");
    const TitanRead never = parallel(pipeline + "fsdp_reshard_after_forward = \"never\"\n");
    const TitanRead usual = parallel(pipeline + "fsdp_reshard_after_forward = \"default\"\n");
    EXPECT_GT(never.candidate.memory.fullest.weights, always.candidate.memory.fullest.weights);
    EXPECT_LT(never.cost().gradients, always.cost().gradients);
    EXPECT_EQ(usual.gigabytes(), pipeline.empty() ? always.gigabytes() : never.gigabytes());
    EXPECT_EQ(usual.cost().total(), pipeline.empty() ? always.cost().total() : never.cost().total());
  }
}

// In f32, unsharded, until the last micro-batch: 4 bytes a parameter of the device's layers.
TEST(Torchtitan, APipelineAddsItsGradientsUpUnsharded) {
  const TitanRead read = parallel("pipeline_parallel_degree = 4\n");
  const model::Shape& shape = read.job.question().workload.model.shape;
  const double layers =
      static_cast<double>(device_layers(read.job.question().workload, read.job.layout(), 0));
  const double held = layers * static_cast<double>(model::layer_parameters(shape)) +
                      static_cast<double>(shape.vocab * shape.hidden);
  EXPECT_NEAR(static_cast<double>(read.candidate.memory.fullest.gradients), held * (4 + 4.0 / 16),
              0.01 * held);
}

// generate_llm_fqn_per_model_part of torchtitan 0.2.2, called with these numbers.
TEST(Torchtitan, StagesHaveTheLayersThatTorchtitanGivesThem) {
  struct Case {
    std::string keys;
    std::vector<std::int64_t> devices;
  };
  const Case cases[] = {
      {"pipeline_parallel_degree = 4\n", {20, 21, 20, 19}},
      {"pipeline_parallel_degree = 4\npipeline_parallel_first_stage_less_layers = 0\n"
       "pipeline_parallel_last_stage_less_layers = 0\n",
       {20, 20, 20, 20}},
      {"pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"interleaved1f1b\"\n", {20, 21, 20, 19}},
      {"pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"ZBVZeroBubble\"\n", {19, 21, 20, 20}},
      {"pipeline_parallel_degree = 8\npipeline_parallel_last_stage_less_layers = 3\n",
       {10, 11, 11, 11, 10, 10, 10, 7}}};
  for (const Case& expected : cases) {
    const TitanRead read = parallel(expected.keys);
    std::vector<std::int64_t> layers;
    for (int rank = 0; rank < read.job.layout().mesh.pipeline; ++rank)
      layers.push_back(device_layers(read.job.question().workload, read.job.layout(), rank));
    EXPECT_EQ(layers, expected.devices) << expected.keys;
  }
}

TEST(Torchtitan, TheFullestDeviceOfASplitThatCountsTheEndsMayBeInTheMiddle) {
  const TitanRead read = recomputing("full", "2",
                                     "pipeline_parallel_degree = 4\n"
                                     "pipeline_parallel_first_stage_less_layers = 8\n"
                                     "pipeline_parallel_last_stage_less_layers = 4\n");
  EXPECT_EQ(read.candidate.memory.rank, 1);
  for (const model::MemoryPeaks& memory : layout_memory(read.job.question().workload, read.job.layout()))
    EXPECT_LE(memory.total(), read.candidate.memory.fullest.total());
}

TEST(Torchtitan, CompiledModelsPassLessOverMemory) {
  const TitanRead eager = parallel("");
  EXPECT_LT(parallel("", "[compile]\nenable = true\n").cost().work.elementwise,
            eager.cost().work.elementwise);
  EXPECT_EQ(parallel("", "[compile]\nenable = true\ncomponents = [\"loss\"]\n").cost().work.elementwise,
            eager.cost().work.elementwise);
}

TEST(Torchtitan, WhatIsReadIsWrittenAgain) {
  const std::string jobs[] = {
      "tensor_parallel_degree = 2\ndata_parallel_replicate_degree = 4\n",
      "fsdp_reshard_after_forward = \"never\"\n",
      "pipeline_parallel_degree = 4\nfsdp_reshard_after_forward = \"always\"\n",
      "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
      "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 2\n"};
  for (const std::string& keys : jobs) {
    for (const std::string mode : {"none", "full", "selective"}) {
      for (const std::string option : {"2", "5", "op"}) {
        const TitanRead once = parallel(keys, "[activation_checkpoint]\nmode = \"" + mode +
                                                  "\"\nselective_ac_option = \"" + option + "\"\n");
        const std::string written =
            print_torchtitan(torchtitan_settings(once.job.question().workload, once.job.layout()));
        EXPECT_EQ(read_job(written).job.layout(), once.job.layout()) << written;
      }
    }
  }
}

TEST(Torchtitan, ModelsOfOneFamilyAreReadAndOthersRefusedWithTheReason) {
  const std::pair<std::string, double> known[] = {
      {"llama3 8B", 8.03}, {"llama3 405B", 405.9}, {"llama4 17bx16e", 107.77}, {"qwen3 0.6B", 0.596},
      {"qwen3 8B", 8.19},  {"qwen3 32B", 32.8},    {"qwen3 30B-A3B", 30.5},    {"qwen3 235B-A22B", 235.1}};
  for (const auto& [both, billions] : known) {
    const std::size_t space = both.find(' ');
    const TitanRead found = read_job("[model]\nname = \"" + both.substr(0, space) + "\"\nflavor = \"" +
                                         both.substr(space + 1) + "\"\n[training]\nlocal_batch_size = 1\n",
                                     512);
    EXPECT_NEAR(static_cast<double>(model::total_parameters(found.job.question().workload.model.shape)) / 1e9,
                billions, 0.005 * billions);
    EXPECT_EQ(found.job.question().workload.model.name, both);
  }
  const std::pair<std::string, std::string> refused[] = {
      {"name = \"deepseek_v3\"\nflavor = \"16B\"", "multi-head latent attention"},
      {"name = \"llama4\"\nflavor = \"17bx128e\"", "experts in every second layer alone"},
      {"name = \"gpt_oss\"\nflavor = \"20b\"", "a window in every second layer"},
      {"name = \"flux\"\nflavor = \"flux-dev\"", "image tokens"},
      {"name = \"llama3_ft\"\nflavor = \"8B\"", "TorchFT"},
      {"name = \"llama3\"\nflavor = \"8B_flex\"", "attention within documents"},
      {"name = \"llama3\"\nflavor = \"80B\"", "flavors of llama3 are debugmodel, 8B, 70B, 405B"},
      {"name = \"lama3\"\nflavor = \"8B\"", "did you mean \"llama3\"?"}};
  for (const auto& [keys, expected] : refused) {
    const std::string said = job_refusal("[model]\n" + keys + "\n");
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  }
}

TEST(Torchtitan, ExpertsAreSharedOutOverTheRanksThatHaveTheSame) {
  const std::string model =
      "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n[training]\nlocal_batch_size = 1\n";
  const auto states = [&](const std::string& keys) {
    return read_job(model + "[parallelism]\n" + keys).candidate.memory.fullest.optimizer;
  };
  // 8 bytes of moments a parameter over all devices, however experts are spread.
  const double parameters = 30.53e9;
  for (const char* keys : {"", "expert_parallel_degree = 8\n", "expert_parallel_degree = 64\n",
                           "expert_parallel_degree = 8\ntensor_parallel_degree = 2\n"})
    EXPECT_NEAR(static_cast<double>(states(keys)) * 64 / parameters, 8, 0.3) << keys;
}

TEST(Torchtitan, AJobFileThatContradictsItselfIsRefusedInTorchtitansWords) {
  const std::string pipeline = "[parallelism]\npipeline_parallel_degree = 4\n";
  const std::pair<std::string, std::string> cases[] = {
      {"[parallelism]\ntensor_parallel_degree = 8\ndata_parallel_shard_degree = 4\n",
       "dp_replicate(1) * dp_shard(4) * cp(1) * tp(8) * pp(1) != WORLD_SIZE(64)"},
      {"[parallelism]\ntensor_parallel_degre = 8\n", "did you mean parallelism.tensor_parallel_degree?"},
      {pipeline + "pipeline_parallel_schedule = \"Looped\"\n",
       "expected one of 1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble, DualPipeV"},
      {"[training]\nlocal_batch_size = 3\nglobal_batch_size = 64\n",
       "is not divisible by training.local_batch_size"},
      {"[training]\nseq_len = 2050\n[parallelism]\ntensor_parallel_degree = 8\n",
       "Sequence length 2050 must be divisible by the product of TP degree (8)"},
      {"[parallelism]\ncontext_parallel_degree = 0\n", "context_parallel_degree"},
      {"[parallelism]\ndata_parallel_shard_degree = 0\n", "dp_shard must -1 or >=1"},
      {"[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 64\n", "is DDP"},
      {"[parallelism]\nfsdp_reshard_after_forward = \"sometimes\"\n",
       "must be \"default\", \"always\" or \"never\""},
      {"[parallelism]\nexpert_parallel_degree = 2\n", "llama3 70B has no experts"},
      {pipeline + "pipeline_parallel_layers_per_stage = 9\n",
       "Number of virtual stages (10) must be divisible"},
      {pipeline + "pipeline_parallel_layers_per_stage = 11\n",
       "Single stage schedule requires exactly 1 stage per rank, but got 2"},
      {pipeline +
           "pipeline_parallel_layers_per_stage = 21\npipeline_parallel_schedule = \"Interleaved1F1B\"\n",
       "Multi-stage schedule requires at least 2 stages per rank, but got 1"},
      {pipeline + "pipeline_parallel_first_stage_less_layers = 40\n",
       "leave an end of the pipeline without layers"},
      {"[activation_checkpoint]\nselective_ac_option = \"often\"\n", "Invalid selective AC option: often"},
      {"[activation_checkpoint]\nmode = \"memory_budget\"\n", "expected none, full or selective"}};
  for (const auto& [more, expected] : cases) {
    const std::string said = job_refusal(kModel + more);
    EXPECT_NE(said.find(expected), std::string::npos) << more << ": " << said;
    EXPECT_EQ(said.rfind("job.toml", 0), 0) << said;
  }
  EXPECT_NE(job_refusal("[model]\nname = \"qwen3\"\nflavor = \"8B\"\n" + pipeline)
                .find("Pipeline Parallel is enabled but qwen3 does not support pipelining"),
            std::string::npos);
}

TEST(Torchtitan, KeysThatWouldChangeTimeOrMemoryAreRefusedByNameAndIdleOnesAreNot) {
  const std::string idle =
      "[job]\ndescription = \"x\"\n[metrics]\nlog_freq = 1\n[optimizer]\nname = \"AdamW\"\nlr = 1e-4\n"
      "[training.dataloader]\nnum_workers = 4\n[checkpoint]\nenable = true\n[profiling]\nenable_profiling = "
      "true\n"
      "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n";
  EXPECT_EQ(read_job(kModel + idle).candidate.step(), read_job(kModel).candidate.step());
  const std::pair<std::string, std::string> cases[] = {
      {"[model]\nflavor = \"70B\"\nconverters = [\"float8\"]\n",
       "model.converters = [\"float8\"] is not predicted"},
      {kModel + "[training]\ndtype = \"bfloat16\"\n",
       "job.toml:5: training.dtype = \"bfloat16\" is not predicted"},
      {kModel + "[training]\nenable_cpu_offload = true\n", "states on the host; expected false"},
      {kModel + "[optimizer]\nname = \"Muon\"\n", "expected \"AdamW\" or \"Adam\""},
      {kModel +
           "[parallelism]\nmodule_fqns_per_model_part = [[\"a\"], [\"b\"]]\npipeline_parallel_degree = 2\n",
       "parallelism.module_fqns_per_model_part"},
      {kModel + "[parallelism]\nenable_async_tensor_parallel = true\ntensor_parallel_degree = 8\n",
       "parallelism.enable_async_tensor_parallel = true"},
      {kModel + "[my_section]\nkey = 1\n", "my_section.key is not a key of torchtitan 0.2.2"},
      {"key = 1\n", "key is not a key of torchtitan 0.2.2"},
      {kModel + "[training]\nseq_len = [[1]]\n", "training.seq_len is [...]; it must be of type integer"},
      {kModel + "[training]\nseq_len = \"long\"\n", "training.seq_len"}};
  for (const auto& [text, expected] : cases) {
    const std::string said = job_refusal(text);
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  }
  // Without tensor ranks there is nothing for it to hide.
  EXPECT_EQ(read_job(kModel + "[parallelism]\nenable_async_tensor_parallel = true\n").candidate.step(),
            read_job(kModel).candidate.step());
}

// Mixed precision comes with FSDP: torchtitan says so in a warning, and trains in f32.
TEST(Torchtitan, WithoutDataOrContextRanksItWouldTrainInF32AndIsRefused) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  try {
    explain_configuration({.torchtitan = kModel + "[parallelism]\ntensor_parallel_degree = 8\n",
                           .origin = "job.toml",
                           .gpus = 8});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("trains in f32"), std::string::npos) << error.what();
  }
}

// torchtitan overlaps experts in DualPipeV unless told otherwise, which is not predicted.
TEST(Torchtitan, DualPipeVWithExpertRanksIsWrittenAsItIsPredicted) {
  const TitanRead once = read_job(
      "[model]\nname = \"llama4\"\nflavor = \"17bx16e\"\n[training]\nseq_len = 8192\n[parallelism]\n"
      "pipeline_parallel_degree = 8\nexpert_parallel_degree = 8\npipeline_parallel_schedule = \"DualPipeV\"\n"
      "pipeline_parallel_expert_parallel_overlap = false\n[activation_checkpoint]\nmode = \"full\"\n");
  const std::string written =
      print_torchtitan(torchtitan_settings(once.job.question().workload, once.job.layout()));
  EXPECT_EQ(read_job(written).job.layout(), once.job.layout()) << written;
}

TEST(Torchtitan, ChangesNearAJobHelpAndAreOfTorchtitan) {
  const TitanRead today = parallel("pipeline_parallel_degree = 4\n");
  const std::vector<Change> changes = nearest_changes(today.job, today.candidate);
  ASSERT_FALSE(changes.empty());
  for (const Change& change : changes) {
    EXPECT_TRUE(change.candidate.memory.fits);
    const std::string written =
        print_torchtitan(torchtitan_settings(today.job.question().workload, change.candidate.layout));
    EXPECT_NEAR(read_job(written).candidate.step(), change.candidate.step(), 1e-12) << written;
  }
}

// The keys of a job, with those of a change in their places.
std::string job_with(std::map<std::string, std::string> keys, const std::string& change) {
  constexpr std::string_view kWithout = "without ";
  for (const std::string_view part : split(change, ',')) {
    const std::string_view words = trim(part);
    if (words.starts_with(kWithout)) {
      EXPECT_EQ(keys.erase(std::string(words.substr(kWithout.size()))), 1) << change;
    } else {
      const std::size_t equals = words.find(" = ");
      keys[std::string(words.substr(0, equals))] = words.substr(equals + 3);
    }
  }
  Settings settings;
  for (const auto& [name, value] : keys) settings.push_back({name, value});
  return print_torchtitan(settings);
}

// Without a global batch or a split of its own, a job's follow from other keys.
TEST(Torchtitan, AJobWithAChangeIsExplainedAsItSays) {
  using Keys = std::map<std::string, std::string>;
  const Keys model{{"model.name", "\"llama3\""}, {"model.flavor", "\"8B\""}, {"training.seq_len", "8192"}};
  int applied_changes = 0;
  for (Keys keys : {Keys{{"training.local_batch_size", "8"}},
                    Keys{{"parallelism.pipeline_parallel_degree", "4"},
                         {"parallelism.pipeline_parallel_schedule", "\"GPipe\""},
                         {"training.local_batch_size", "8"},
                         {"training.global_batch_size", "128"}},
                    Keys{{"parallelism.pipeline_parallel_degree", "4"},
                         {"parallelism.pipeline_parallel_schedule", "\"Interleaved1F1B\""},
                         {"activation_checkpoint.selective_ac_option", "\"op\""},
                         {"training.local_batch_size", "16"}},
                    Keys{{"parallelism.tensor_parallel_degree", "8"},
                         {"activation_checkpoint.mode", "\"full\""},
                         {"training.local_batch_size", "4"}},
                    Keys{{"parallelism.context_parallel_degree", "4"},
                         {"activation_checkpoint.mode", "\"full\""},
                         {"training.local_batch_size", "4"}}}) {
    keys.insert(model.begin(), model.end());
    const TitanRead today = read_job(job_with(keys, "training.seq_len = 8192"));
    for (const Change& change : nearest_changes(today.job, today.candidate, 30)) {
      const std::string text = job_with(keys, change.text);
      const TitanRead changed = read_job(text);
      EXPECT_EQ(changed.job.layout(), change.candidate.layout) << change.text << text;
      EXPECT_EQ(changed.candidate.step(), change.candidate.step()) << text;
      EXPECT_EQ(changed.job.question().workload.global_batch, today.job.question().workload.global_batch);
      ++applied_changes;
    }
  }
  EXPECT_GT(applied_changes, 50);
}

}  // namespace
}  // namespace penstock::plan
