// SPDX-License-Identifier: Apache-2.0
// Wrong input of commands that has its own message.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "files/model_config.h"
#include "run_program.h"

namespace penstock::testing {
namespace {

const std::string kPlan = PENSTOCK_SOURCE_DIR "/plans/llama-70b-128k.toml";

// The one line that it ends with.
std::string refused(const Arguments& arguments, int exit_code = 2) {
  const Ending ending = program(arguments);
  EXPECT_EQ(ending.exit_code, exit_code) << ending.out << ending.err;
  EXPECT_EQ(ending.complaints().size(), 1u) << ending.err;
  return ending.complaints().empty() ? "" : ending.complaints()[0];
}

namespace fs = std::filesystem;

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(WrongInput, OfASweepEndsItWhereItCannotBeRead) {
  EXPECT_TRUE(says(
      refused({"simulate", "--schedule", "1f1b", "-p", "2", "-m", "4", "--sweep", "micro_batches=1,x,4"}),
      "--sweep micro_batches=1,x,4: \"x\" is not a whole number from 1 to 2147483647"));
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Arguments simulate{"simulate", scratch / "run.toml", "--hardware", "assumed", "--sweep"};
  const auto swept = [&](const std::string& setting) {
    Arguments words = simulate;
    words.push_back(setting);
    return words;
  };
  EXPECT_TRUE(says(refused(swept("slices=1,x,4")), "\"x\" is not a whole number"));
  EXPECT_TRUE(says(refused(swept("slices=1,,4")), "a value is missing"));
  EXPECT_TRUE(refused(swept("train.lr=1e-3,much")).starts_with("--sweep train.lr=1e-3,much: "));
  EXPECT_EQ(program(swept("slices=1,31")).exit_code, 0) << "more slices than tokens is a row of the table";
}

TEST(WrongInput, OfACommandPointsToItsOwnHelp) {
  EXPECT_TRUE(says(refused({"show", "-p", "none"}), "(see penstock show --help)"));
  EXPECT_TRUE(says(refused({"--none"}), "(see penstock --help)"));
}

TEST(WrongInput, OfSimulateNamesItsFlag) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  EXPECT_EQ(refused({"simulate", scratch / "run.toml", "--hardware", "assumed", "--attention", "-1"}),
            "--attention -1: expected a number of 0 or more");
}

TEST(WrongInput, OfAnOutputKeepsAFileOfAnotherKind) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const std::string text = scratch.read("corpus.txt"), corpus = scratch / "corpus.txt";
  const std::vector<Arguments> commands{
      {"report", scratch / "run.toml", "--output", corpus},
      {"report", scratch / "run.toml", "--output", scratch / "page.html", "--trace", corpus},
      {"simulate", "--schedule", "1f1b", "-p", "2", "-m", "2", "--report", corpus},
      {"simulate", "--schedule", "1f1b", "-p", "2", "-m", "2", "--sweep", "micro_batches=2,4", "--plot",
       corpus}};
  for (const Arguments& command : commands)
    EXPECT_TRUE(says(refused(command), "corpus.txt holds something else, which would be lost"));
  EXPECT_EQ(scratch.read("corpus.txt"), text);
  EXPECT_FALSE(fs::exists(scratch / "page.html"));
  // A page takes the place of a page, and of an empty file.
  scratch.write("page.html", "");
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(program({"report", scratch / "run.toml", "--output", scratch / "page.html"}).exit_code, 0);
}

TEST(WrongInput, ANumberWithALeadingZeroIsNotReadAsOctal) {
  EXPECT_TRUE(says(refused({"show", "--schedule", "1f1b", "-p", "010", "-m", "4"}),
                   "\"010\": leave out the leading zero"));
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  EXPECT_TRUE(says(refused({"data", scratch / "run.toml", "--hardware", "assumed", "--steps", "010"}),
                   "--steps: \"010\": leave out the leading zero"));
  EXPECT_EQ(program({"show", "--schedule", "interleaved", "-p", "4", "-m", "4", "--group", "0"}).exit_code,
            0);
}

TEST(WrongInput, AnOutputThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const Scratch scratch;
  for (const Arguments& command :
       {Arguments{"simulate", "--schedule", "1f1b", "-p", "2", "-m", "4", "--report"},
        {"simulate", "--schedule", "1f1b", "-p", "2", "-m", "4", "--trace"},
        {"plan", kPlan, "--report"},
        {"plan", kPlan, "--run-file"},
        {"profile", "--out"},
        {"report", "nowhere.csv", "--trace"}}) {
    Arguments words = command;
    words.push_back(scratch / "none/file");
    EXPECT_TRUE(says(refused(words), command.back() + " " + scratch / "none/file" + ": there is no folder"));
    words.back() = scratch.path();
    EXPECT_TRUE(says(refused(words), "is a folder; name a file"));
    words.back() = "/dev/null";
    EXPECT_TRUE(says(refused(words), "is not a regular file"));
  }
}

// Its stages and slices could be any number.
TEST(WrongInput, AnIllegalScheduleIsToldBeforeATableIsMadeForIt) {
  const Scratch scratch;
  scratch.write("huge.csv", "1048575F0.32766\n");
  scratch.write("costs.txt", "F * * 1\nB * * 2\n");
  const Ending ending = program({"simulate", scratch / "huge.csv", "--costs", scratch / "costs.txt"});
  EXPECT_EQ(ending.exit_code, 1) << ending.err;
  EXPECT_TRUE(says(ending.err, "not a legal schedule")) << ending.err;
}

TEST(WrongInput, AConversionNeedsAName) {
  const Scratch scratch;
  scratch.write("text.txt", "abc");
  EXPECT_TRUE(says(refused({"convert", scratch / "text.txt", "-o", ""}), "names no file"));
  EXPECT_TRUE(says(refused({"convert", scratch / "text.txt", "-o", scratch / ""}), "names no file"));
}

TEST(WrongInput, APlanDoesNotWriteOverARunFile) {
  const Scratch scratch;
  scratch.write("mine.toml", "x");
  EXPECT_TRUE(says(refused({"plan", kPlan, "--run-file", scratch / "mine.toml"}), "already exists"));
  EXPECT_EQ(scratch.read("mine.toml"), "x");
}

TEST(WrongInput, KeysOfALayoutNeedExplain) {
  EXPECT_TRUE(says(refused({"plan", kPlan, "--layout.pp=8"}), "give --explain too"));
}

// A value after a space is the key's, not a plan file.
TEST(WrongInput, KeysOfAPlanWithoutAFileTakeTheirValuesAfterASpaceToo) {
  const std::vector<std::string> question{"plan", "--model",    "llama-7b",    "--gpus",
                                          "8",    "--hardware", "h800",        "--seq-len",
                                          "4096", "--explain",  "--layout.pp", "4"};
  const Ending plan = program(question);
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(says(plan.out, "p4")) << plan.out;
}

TEST(WrongInput, AKnownModelTakesNoSizes) {
  EXPECT_TRUE(says(refused({"plan", "--model", "llama-7b", "--gpus", "8", "--hardware", "h800", "--seq-len",
                            "4096", "--model.vocab=64000"}),
                   "model.vocab = 64000 and model.name = \"llama-7b\" are both given; keep one"));
}

TEST(WrongInput, SpeedsThatAHardwareFileLeavesOpenAreNamedByThePlan) {
  const Ending plan = program({"plan", kPlan});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(says(lines_of(plan.out)[0], "efficiency.attention_backward = 0.85")) << plan.out;
  const auto json = nlohmann::json::parse(program({"plan", kPlan, "--json"}).out);
  EXPECT_FALSE(json["assumed"].empty());
}

TEST(WrongInput, ALimitNeedsAUnit) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto with_limit = [&](const std::string& limit) {
    return Arguments{"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--memory.limit", limit};
  };
  EXPECT_TRUE(says(refused(with_limit("6")), "\"6\" is not a size; write a number and a unit"));
  EXPECT_TRUE(says(refused(with_limit("-6 GiB")), "\"-6 GiB\" is negative"));
  EXPECT_TRUE(says(refused({"plan", kPlan, "--memory.limit", "75"}), "write a number and a unit"));
}

// A mistyped path would be made anywhere; its last folder may be new.
TEST(WrongInput, AFolderOfCopiesIsNotMadeInFoldersThatDoNotExist) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto in_folder = [&](const std::string& folder) {
    return Arguments{"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--train.buddy_every",
                     "1",     "--train.buddy_dir",  folder};
  };
  const std::string is_none = "\" is not a directory; name an existing one, such as \"/dev/shm\"";
  EXPECT_TRUE(
      says(refused(in_folder(scratch / "none/memory")),
           "train.buddy_dir = \"" + scratch / "none/memory" + is_none + ", or a new one in an existing one"));
  EXPECT_TRUE(says(refused(in_folder(scratch / "run.toml")), scratch / "run.toml" + is_none));
  for (const char* folder : {"memory", "memory/"})
    EXPECT_EQ(program(in_folder(scratch / folder)).exit_code, 0) << folder;
}

TEST(WrongInput, RotaryFactorsInTheWrongOrderAreRefused) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  EXPECT_TRUE(
      says(refused({"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--model.rope_factor", "8",
                    "--model.rope_low_frequency_factor", "4", "--model.rope_high_frequency_factor", "1"}),
           "model.rope_high_frequency_factor = 1 must be above"));
  EXPECT_TRUE(says(refused({"train", scratch / "run.toml", "--ranks", "2", "--dry-run",
                            "--model.rope_low_frequency_factor", "2"}),
                   "need model.rope_factor above 1"));
}

TEST(WrongInput, SequencesOfOneTokenHaveNoRoomForASample) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  EXPECT_TRUE(says(refused({"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--schedule.name",
                            "1f1b", "--schedule.slices", "1", "--data.seq_len", "1", "--sample", "1"}),
                   "data.seq_len = 1 has room for 0 tokens after the prompt"));
}

TEST(WrongInput, OfTwoSourcesOfDataIsTheFaultThatIsNamed) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  EXPECT_TRUE(
      says(refused({"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--data.megatron", "x"}),
           "are both given; keep one"));
}

TEST(WrongInput, ATensorThatIsNeverKeptIsNotProposed) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const std::string text =
      refused({"train", scratch / "run.toml", "--ranks", "2", "--dry-run", "--memory.keep", "silo"});
  EXPECT_TRUE(says(text, "\"silo\" is unknown; expected one of \"layer_input\", ")) << text;
  EXPECT_FALSE(says(text, "\"silu\"")) << text;
}

TEST(WrongInput, AConfigOfAnotherFamilyIsRefused) {
  const auto fault = [](const std::string& text) {
    return failure<InputError>([&] { files::parse_model_config(text, "config.json"); });
  };
  EXPECT_EQ(
      fault(R"({"model_type": "llama", "architectures": ["MistralForCausalLM"]})"),
      R"(config.json: architectures = ["MistralForCausalLM"] is not supported; expected ["LlamaForCausalLM"])");
  EXPECT_EQ(fault("{\n  \"model_type\": llama}"),
            "config.json: the file is not JSON: line 2, column 17: unexpected \"l\"");
}

TEST(WrongInput, AnIllegalScheduleIsShownWithAWord) {
  const Scratch scratch;
  scratch.write("bad.csv", "0B0,0F0\n");
  const Ending shown = program({"show", scratch / "bad.csv"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.complaints(), std::vector<std::string>{"this schedule is illegal; penstock check " +
                                                         (scratch / "bad.csv") + " says why"});
}

// Weights of a run do not show the differences; other rotary positions are how training goes on with longer
// sequences.
TEST(WrongInput, WeightsOfARunOfAnotherModelAreRefused) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  ASSERT_EQ(program({"train", scratch / "run.toml", "--ranks", "2", "--train.steps", "1"}).exit_code, 0);
  for (const std::string& source : {scratch / "run", scratch / "run/checkpoints/step-000001"}) {
    const auto trained = [&](const char* key, const char* value) {
      return program({"train", scratch / "run.toml", "--dry-run", "--ranks", "2", "--output.dir",
                      scratch / "new", "--model.weights", source, key, value});
    };
    const Ending other = trained("--model.norm_epsilon", "0.125");
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_NE(other.err.find("run.toml says model.norm_epsilon = "), std::string::npos) << other.err;
    EXPECT_NE(other.err.find(", but the run has 0.125; set it to that"), std::string::npos) << other.err;
    const Ending longer = trained("--model.rope_theta", "500000");
    EXPECT_EQ(longer.exit_code, 0) << longer.err;
  }
}

// As the message advises; the run still describes the model.
TEST(WrongInput, ACheckpointIsConvertedWithoutItsDamagedFacts) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  ASSERT_EQ(program({"train", scratch / "run.toml", "--ranks", "2", "--train.steps", "1"}).exit_code, 0);
  const std::string checkpoint = "run/checkpoints/step-000001";
  scratch.write(checkpoint + "/checkpoint.json", "{");
  const Arguments convert{"convert", scratch / checkpoint, "-o", scratch / "model"};
  const Ending damaged = program(convert);
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_NE(damaged.err.find("rename that file"), std::string::npos) << damaged.err;
  std::filesystem::rename(scratch / (checkpoint + "/checkpoint.json"),
                          scratch / (checkpoint + "/damaged.json"));
  const Ending converted = program(convert);
  EXPECT_EQ(converted.exit_code, 0) << converted.err;
}

// Nothing beside the file says what it is of.
TEST(WrongInput, AnOutputMatrixIsNotLostToTiedEmbeddings) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  for (const char* tied : {"false", "true"}) {
    ASSERT_EQ(program({"train", scratch / "run.toml", "--ranks", "2", "--train.steps", "1",
                       "--model.tied_embeddings", tied, "--output.dir", scratch / tied})
                  .exit_code,
              0);
    std::filesystem::copy(scratch / (std::string(tied) + "/weights.safetensors"),
                          scratch / (std::string(tied) + ".safetensors"));
  }
  const auto started = [&](const std::string& weights) {
    return program({"train", scratch / "run.toml", "--dry-run", "--ranks", "2", "--output.dir",
                    scratch / "new", "--model.tied_embeddings", "true", "--model.weights",
                    scratch / weights});
  };
  EXPECT_EQ(started("true.safetensors").exit_code, 0);
  const Ending lost = started("false.safetensors");
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_NE(lost.err.find("the output matrix lm_head.weight is not the embedding's"), std::string::npos)
      << lost.err;
}

TEST(WrongInput, APageOfSeveralSourcesDoesNotReplaceThatOfARun) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  scratch.write("one.csv", "0F0,0B0\n");
  ASSERT_EQ(program({"train", scratch / "run.toml", "--ranks", "2", "--train.steps", "1"}).exit_code, 0);
  const std::string own = scratch.read("run/report.html");
  const auto reported = [&](const std::string& words) {
    return run_program(
        {"/bin/sh", "-c", "cd " + scratch / "run" + " && " PENSTOCK_PROGRAM " report " + words});
  };
  const Ending refused = reported(". ../one.csv");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("report.html is the page of the run in this folder"), std::string::npos)
      << refused.err;
  EXPECT_EQ(scratch.read("run/report.html"), own);
  EXPECT_EQ(reported(". ../one.csv -o ../both.html").exit_code, 0);
  EXPECT_EQ(reported(".").exit_code, 0);
}

TEST(WrongInput, LinesOfMetricsThatAreNoneAreNamedByAReport) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  ASSERT_EQ(program({"train", scratch / "run.toml", "--ranks", "2"}).exit_code, 0);
  const std::string metrics = scratch.read("run/metrics.jsonl");
  scratch.write("run/metrics.jsonl", "garbage\n" + metrics);
  const Ending report = program({"report", scratch / "run"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.complaints(),
            std::vector<std::string>{scratch / "run/metrics.jsonl" +
                                     ", line 1: \"garbage\" is not a step's metrics; it is left out"});
  scratch.write("run/metrics.jsonl", "");
  EXPECT_EQ(program({"report", scratch / "run"}).complaints(),
            std::vector<std::string>{scratch / "run/metrics.jsonl has no step's metrics"});
}

}  // namespace
}  // namespace penstock::testing
