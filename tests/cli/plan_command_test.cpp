// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "plan_program.h"

namespace penstock::cli {
namespace {

using testing::Arguments;
using testing::Ending;
using Json = nlohmann::json;

TEST(PlanCommand, ItsJsonHasThePromisedKeysAndItsCountsAddUp) {
  const Ending ending = plan({kPlans + "mixtral-8x7b.toml", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json json = Json::parse(ending.out);
  std::int64_t rejected = 0;
  for (const auto& [kind, count] : json.at("rejected").items()) rejected += count.get<std::int64_t>();
  EXPECT_EQ(json.at("candidates").get<std::int64_t>(), rejected + json.at("fitting").get<std::int64_t>());
  EXPECT_GT(json.at("search_s").get<double>(), 0);
  double last = 0;
  for (const Json& best : json.at("best")) {
    for (const char* key :
         {"tp", "cp", "ep", "pp", "dp", "chunks", "slices", "schedule", "policy", "offload_ratio", "step_s",
          "tokens_per_s_per_gpu", "mfu", "peak_bytes", "host_bytes"})
      EXPECT_TRUE(best.contains(key)) << key;
    EXPECT_EQ(best["tp"].get<int>() * best["cp"].get<int>() * best["pp"].get<int>() * best["dp"].get<int>(),
              64);
    if (!best["simulated"].get<bool>()) continue;
    EXPECT_GE(best["step_s"].get<double>(), last) << "quickest first";
    last = best["step_s"].get<double>();
  }
}

TEST(PlanCommand, NeedsNoFileAndKeepsTheQuestionAsOne) {
  const Scratch scratch;
  const Arguments question{"--model",    "llama-70b-gqa", "--gpus",    "64",
                           "--hardware", "h100",          "--seq-len", "131072"};
  const auto with = [&](const Arguments& more) {
    Arguments words = question;
    words.insert(words.end(), more.begin(), more.end());
    return plan(words);
  };
  const Ending first = with({"--json", "--write", scratch / "plan.toml"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Ending again = plan({scratch / "plan.toml", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(first.out)["best"], Json::parse(again.out)["best"]);
  EXPECT_EQ(plan({scratch / "plan.toml", "--print-config"}).out, scratch.read("plan.toml"));
  EXPECT_EQ(plan({scratch / "plan.toml", "--print-config", "--json"}).exit_code, 2);
  EXPECT_NE(scratch.read("plan.toml").find("global_batch = 32"), std::string::npos) << "the usual batch";
  EXPECT_EQ(with({"--write", scratch / "plan.toml"}).exit_code, 2) << "it is there";

  scratch.write("config.json", R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32004})");
  const Ending of_config = plan({"--model", scratch.path(), "--gpus", "8", "--seq-len", "4096", "--json"});
  const Ending of_name = plan({"--model", "llama-7b", "--gpus", "8", "--seq-len", "4096", "--json"});
  ASSERT_EQ(of_config.exit_code, 0) << of_config.err;
  EXPECT_EQ(Json::parse(of_config.out)["best"][0]["step_s"], Json::parse(of_name.out)["best"][0]["step_s"]);
}

TEST(PlanCommand, NamesWhatAQuestionLacks) {
  const auto complaint = [](const Arguments& words) {
    const Ending ending = plan(words);
    EXPECT_EQ(ending.exit_code, 2);
    return ending.complaints().size() == 1 ? ending.complaints()[0] : ending.err;
  };
  EXPECT_NE(complaint({"--gpus", "64"}).find("or --model with --gpus and --seq-len"), std::string::npos);
  EXPECT_NE(complaint({"--model", "llama-7b", "--gpus", "8"}).find("workload.seq_len"), std::string::npos);
  EXPECT_NE(complaint({"--model", "llama-7b", "--seq-len", "4096"}).find("cluster.gpus"), std::string::npos);
  const Ending none = plan({"--model", "llama-175b", "--gpus", "8", "--seq-len", "131072"});
  EXPECT_EQ(none.exit_code, 1);
  ASSERT_EQ(none.complaints().size(), 1u) << none.err;
  EXPECT_TRUE(none.complaints()[0].starts_with("nothing ")) << none.err;
  EXPECT_NE(complaint({"--model", "lama-7b", "--gpus", "8", "--seq-len", "4096"}).find("did you mean"),
            std::string::npos);
}

TEST(PlanCommand, WhereNothingFitsItNamesTheNearestMissAndWhatWouldFit) {
  const Ending ending =
      plan({kPlans + "llama-70b-128k.toml", "--cluster.gpus", "8", "--workload.global_batch", "1"});
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_EQ(ending.out, "");
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  for (const char* part : {"nothing fits in", "nearest is", "of which", "would fit with"})
    EXPECT_NE(ending.complaints()[0].find(part), std::string::npos) << part;
}

TEST(PlanCommand, WhereNothingFitsItsJsonHasTheNearestMiss) {
  const Ending ending =
      plan({kPlans + "llama-70b-128k.toml", "--json", "--cluster.gpus", "8", "--workload.global_batch", "1"});
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_EQ(ending.complaints().size(), 1u) << ending.err;
  const Json json = Json::parse(ending.out);
  EXPECT_TRUE(json["best"].empty());
  const Json& miss = json["nearest_miss"];
  EXPECT_FALSE(miss["fits"].get<bool>());
  EXPECT_EQ(miss["tp"].get<int>() * miss["cp"].get<int>() * miss["pp"].get<int>() * miss["dp"].get<int>(), 8);
  EXPECT_GT(miss["peak_bytes"].get<double>(), 75e9);
}

TEST(PlanCommand, AnExplanationNamesEveryTermAndWhatWouldMakeItFit) {
  const Arguments tight{kPlans + "llama-70b-128k.toml",
                        "--explain",
                        "--layout.tp",
                        "8",
                        "--layout.pp",
                        "8",
                        "--layout.slices",
                        "8",
                        "--memory.offload",
                        "0"};
  const Ending text = plan(tight);
  EXPECT_EQ(text.exit_code, 1) << "120 GB of records do not fit";
  for (const char* part : {"matrix products", "attention", "bubble", "optimizer", "step, simulated",
                           "device 0", "does not fit; would fit with: "})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  Arguments json = tight;
  json.push_back("--json");
  const Json best = Json::parse(plan(json).out).at("best");
  ASSERT_EQ(best.size(), 1u);
  double terms = 0;
  for (const auto& [name, seconds] : best[0].at("terms_s").items()) terms += seconds.get<double>();
  EXPECT_NEAR(terms, best[0].at("closed_form_s").get<double>(), 1e-9 * terms);
}

TEST(PlanCommand, ItsReportHoldsEveryChartAndTheWinnersTimeline) {
  const Scratch scratch;
  ASSERT_EQ(plan({kPlans + "mixtral-8x7b.toml", "--report", scratch / "plan.html"}).exit_code, 0);
  const std::string page = scratch.read("plan.html");
  for (const char* part : {"Memory by category", "Time by term", "Least time by memory", "Rejected",
                           "\"simulated\"", "Memory of the devices", "matrix products", "weights"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(PlanCommand, FlagsThatWouldBeIgnoredAreRefused) {
  const std::string file = kPlans + "mixtral-8x7b.toml",
                    table = PENSTOCK_SOURCE_DIR "/bench/reference/atc24_memory.csv";
  for (const Arguments& words : {Arguments{},
                                 {file, "--score", table},
                                 {file, "--hardware", "hardware"},
                                 {"--score", table, "--run-file", "x.toml"},
                                 {"--score", table, "--report", "x.html"},
                                 {"--score", table, "--fit", "bench"},
                                 {"--score", table, "--hardware", "h200"},
                                 {"--fit", "bench/reference", "--json"},
                                 {"--score", table, "--model.layers", "3"}}) {
    const Ending ending = plan(words);
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_EQ(ending.complaints().size(), 1u) << ending.err;
  }
}

TEST(PlanCommand, ScoresATableOfThroughputByKindAndDrawsIt) {
  const Scratch scratch;
  const std::string table = PENSTOCK_SOURCE_DIR "/bench/reference/throughput/hopper.csv";
  const Ending ending = plan({"--score", table, "--json", "--report", scratch / "score.html"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json json = Json::parse(ending.out);
  EXPECT_EQ(json.at("rows").size() + json.at("refused").size(), 250u);
  EXPECT_EQ(json.at("rows")[0].at("engine"), "nemo");
  std::size_t rows = 0;
  for (const auto& [engine, errors] : json.at("kinds").at("engine").items())
    rows += errors.at("count").get<std::size_t>();
  EXPECT_EQ(rows, json.at("rows").size());
  EXPECT_GT(json.at("ranking").at("pairs").get<int>(), 0);
  const std::string page = scratch.read("score.html");
  EXPECT_NE(page.find("The worst rows, term by term"), std::string::npos);
  EXPECT_NE(page.find("megatron-2025"), std::string::npos) << "a plot for each engine";
}

TEST(PlanCommand, BadRowsOfATableOfThroughputAreNamedAndTheOthersScored) {
  const Scratch scratch;
  const std::string table =
      files::read_text(PENSTOCK_SOURCE_DIR "/bench/reference/throughput/hopper.csv", 1 << 20);
  const std::size_t header = table.find('\n') + 1, first = table.find('\n', header) + 1,
                    second = table.find('\n', first) + 1;
  std::string bad = table.substr(header, first - header);
  bad.replace(bad.find("H100 80GB"), 9, "B200 180GB");
  scratch.write("table.csv", table.substr(0, first) + bad + table.substr(first, second - first));
  const Ending ending = plan({"--score", scratch / "table.csv", "--json"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("row 2, hardware = \"B200 180GB"), std::string::npos) << ending.err;
  EXPECT_EQ(Json::parse(ending.out).at("rows").size(), 2u);
}

TEST(PlanCommand, APlanTellsHowFarItsStepMayBeOff) {
  const Arguments question{"--model",  "llama3-8b", "--gpus", "64",    "--hardware",
                           "dgx-h100", "--seq-len", "8192",   "--json"};
  const auto interval = [&](const std::string& engine) {
    Arguments words = question;
    words.insert(words.end(), {"--cluster.engine", engine});
    const Ending ending = plan(words);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    const Json json = Json::parse(ending.out);
    Json found = json.at("interval");
    const double step = json.at("best")[0].at("step_s").get<double>();
    EXPECT_LT(found.at("low_s").get<double>(), step);
    EXPECT_GT(found.at("high_s").get<double>(), step);
    return found;
  };
  const Json own = interval("nemo"), unknown = interval("penstock");
  EXPECT_TRUE(own.at("own_engine").get<bool>());
  EXPECT_FALSE(unknown.at("own_engine").get<bool>());
  EXPECT_NE(unknown.at("outside").dump().find("few or no runs of the engine penstock"), std::string::npos);
  const Ending processor = plan({kPlans + "this-machine.toml", "--json"});
  EXPECT_EQ(processor.exit_code, 0) << processor.err;
  EXPECT_FALSE(Json::parse(processor.out).contains("interval")) << "published runs are on GPUs";
}

TEST(PlanCommand, AWrittenQuestionFindsTheHardwareThatItNames) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "plans");
  std::filesystem::copy_file(PENSTOCK_SOURCE_DIR "/hardware/h100.toml", scratch / "machine.toml");
  const std::string machine = std::filesystem::relative(scratch / "machine.toml").string();
  const Ending written = plan({"--model", "llama-7b", "--gpus", "8", "--seq-len", "4096", "--hardware",
                               machine, "--write", scratch / "plans/new.toml"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const Ending read = plan({scratch / "plans/new.toml", "--print-config"});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(read.out, scratch.read("plans/new.toml"));
}

// A bare name is looked for next to the plan file, where another plan file may not lie.
TEST(PlanCommand, AWrittenQuestionFindsWhatItsOwnFileNamedByItsPlace) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  for (const char* folder : {"plans", "hardware", "engines", "other/place"})
    fs::create_directories(scratch / folder);
  fs::copy_file(PENSTOCK_SOURCE_DIR "/hardware/h100.toml", scratch / "hardware/mine.toml");
  fs::copy_file(PENSTOCK_SOURCE_DIR "/engines/nemo.toml", scratch / "engines/ours.toml");
  scratch.write("plans/named.toml",
                "[model]\nname = \"llama-7b\"\n[workload]\nseq_len = 4096\nglobal_batch = 8\n"
                "[cluster]\ngpus = 8\nhardware = \"mine\"\nengine = \"ours\"\n");
  const Ending first = plan({scratch / "plans/named.toml", "--print-config"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  scratch.write("other/place/again.toml", first.out);
  const Ending again = plan({scratch / "other/place/again.toml", "--print-config"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  const Ending known = plan(
      {"--model", "llama-7b", "--gpus", "8", "--seq-len", "4096", "--hardware", "h100", "--print-config"});
  EXPECT_NE(known.out.find("hardware = \"h100\"\n"), std::string::npos) << known.out;
}

// As in another clone of the repository, with files that the program's own tree has too.
TEST(PlanCommand, AWrittenQuestionNamesKnownHardwareByItsNameFromEveryFolder) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  fs::create_directory(scratch / "hardware");
  fs::copy_file(PENSTOCK_SOURCE_DIR "/hardware/h100.toml", scratch / "hardware/h100.toml");
  const auto written = [&] {
    return testing::run_program(
               {"sh", "-c",
                "cd " + scratch.path() +
                    " && " PENSTOCK_PROGRAM
                    " plan --model llama-7b --gpus 8 --seq-len 4096 --hardware h100 --print-config"})
        .out;
  };
  EXPECT_NE(written().find("hardware = \"h100\"\n"), std::string::npos) << written();
  scratch.write("hardware/h100.toml", scratch.read("hardware/h100.toml") + "# mine\n");
  EXPECT_NE(written().find(scratch / "hardware/h100.toml"), std::string::npos) << written();
}

TEST(PlanCommand, AnUnknownEngineIsNamedWithTheKnownOnes) {
  const Ending ending = plan({kPlans + "mixtral-8x7b.toml", "--cluster.engine", "nemoo"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("engine \"nemoo\" is unknown; give a path, or one of penstock, megatron, "
                            "torchtitan, aleph-alpha"),
            std::string::npos)
      << ending.err;
  EXPECT_EQ(plan({kPlans + "mixtral-8x7b.toml", "--checked", "here.csv"}).exit_code, 2);
}

TEST(PlanCommand, TakesAllThatAConfigurationSaysOfTheModel) {
  const Scratch scratch;
  scratch.write(
      "config.json",
      R"({"model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 1024, "intermediate_size": 3072,
                    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32000,
                    "rope_theta": 1000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": true})");
  const Ending ending = plan(
      {"--model", scratch.path(), "--gpus", "8", "--seq-len", "4096", "--run-file", scratch / "run.toml"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const std::string file = scratch.read("run.toml");
  for (const char* line :
       {"head_size = 128\n", "head_norms = true\n", "rope_theta = 1e+06\n", "norm_epsilon = 1e-06\n"})
    EXPECT_NE(file.find(line), std::string::npos) << line << file;
}

TEST(PlanCommand, ALayoutThatAHostCannotHoldDoesNotFit) {
  const Ending ending = plan({"--explain", "--model", "llama3-8b", "--gpus", "8", "--hardware", "h100",
                              "--seq-len", "524288", "--workload.global_batch", "8", "--layout.pp", "8",
                              "--layout.slices", "256", "--memory.offload", "1"});
  EXPECT_EQ(ending.exit_code, 1) << ending.out;
  EXPECT_NE(ending.out.find("would fit with: hosts of "), std::string::npos) << ending.out;
}

TEST(PlanCommand, ALayoutThatTheTrainerRefusesIsImpossible) {
  const Ending ending = plan(
      {kPlans + "this-machine.toml", "--explain", "--layout.pp", "2", "--workload.global_batch", "16000000"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("[layout] is impossible: train.batch = 16000000 makes 16000000 micro-batches"),
            std::string::npos)
      << ending.err;
}

TEST(PlanCommand, AnImpossibleLayoutIsRefusedWithItsSizesAndTheLegalOnes) {
  const Ending ending =
      plan({kPlans + "llama-70b-128k.toml", "--explain", "--cluster.gpus", "96", "--layout.tp", "3"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(
      ending.err.find(
          "; heads = 64 is divided by 1, 2, 4, 8, 16, 32, 64; it has schedule = \"slimpipe\", tp = 3, cp = "),
      std::string::npos)
      << ending.err;
}

TEST(PlanCommand, AnImpossibleLayoutIsRefusedInItsSchedulesWords) {
  const Ending ending =
      plan({kPlans + "this-machine.toml", "--explain", "--layout.pp", "2", "--layout.schedule", "zb-v"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("[layout] is impossible: zb-v needs v = 2, got 1"), std::string::npos)
      << ending.err;
}

TEST(PlanCommand, RefusesMoreSequencesThanARunMayHave) {
  const Ending ending = plan({"--explain", "--model", "llama-7b", "--gpus", "1", "--seq-len", "256",
                              "--workload.global_batch", "3000000000"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("workload.global_batch"), std::string::npos) << ending.err;
}

}  // namespace
}  // namespace penstock::cli
