// SPDX-License-Identifier: Apache-2.0
#include "plan/question.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "cli/input/machine_sets.h"
#include "run/hardware_file.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

// Reads a checked-in plan with overrides; the message of its refusal, or "".
std::string refusal(const std::vector<std::string>& overrides) {
  try {
    plan::read_question(PENSTOCK_SOURCE_DIR "/plans/mixtral-8x7b.toml", overrides);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(PlanFile, EveryCheckedInPlanAndHardwareFileReads) {
  int plans = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_SOURCE_DIR "/plans")) {
    EXPECT_NO_THROW(plan::read_question(entry.path())) << entry.path();
    ++plans;
  }
  EXPECT_GE(plans, 4);
  const auto hardware = read_hardware_folder(PENSTOCK_SOURCE_DIR "/hardware");
  for (const char* name : {"a100", "a800", "h800", "h800-cudnn", "h100", "h200", "this-machine"}) {
    ASSERT_TRUE(hardware.contains(name));
    EXPECT_EQ(hardware.at(name).device.name, name);
  }
}

TEST(PlanFile, ImpossibleClustersAndUnknownKeysAreRefusedNamingTheKey) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({"--cluster.gpus", "0"}).find("cluster.gpus"), std::string::npos);
  EXPECT_NE(refusal({"--cluster.gpus", "12"}).find("nearest are 8 and 16"), std::string::npos);
  EXPECT_NE(refusal({"--cluster.gpu", "8"}).find("cluster.gpus"), std::string::npos);
  EXPECT_NE(refusal({"--cluster.hardware", "h900"}).find("h800"), std::string::npos);
  EXPECT_NE(refusal({"--model.name", "mixtral"}).find("mixtral-8x7b"), std::string::npos);
  EXPECT_NE(refusal({"--workload.seq_len", "-5"}).find("workload.seq_len"), std::string::npos);
}

TEST(PlanFile, SizesThatNoModelOrEngineHasAreRefused) {
  const Scratch scratch;
  scratch.write("engine.toml", "[gradients]\nbytes = 1e300\n");
  EXPECT_NE(refusal({"--cluster.engine", scratch / "engine.toml"})
                .find("engine.toml:2: gradients.bytes = 1e+300 must be from 0.1 to 1000000"),
            std::string::npos);
  EXPECT_NE(refusal({"--model.layers", "65537"}).find("model.layers = 65537 must be from 1 to 65536"),
            std::string::npos);
}

TEST(PlanFile, ItsPathsAreFromItsFolderAndThoseOfWordsFromTheWorkingDirectory) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  fs::create_directory(scratch / "plans");
  fs::copy_file(PENSTOCK_SOURCE_DIR "/hardware/h100.toml", scratch / "machine.toml");
  fs::copy_file(PENSTOCK_SOURCE_DIR "/engines/nemo.toml", scratch / "engine.toml");
  const std::string text =
      "[model]\nname = \"llama-7b\"\n[workload]\nseq_len = 4096\nglobal_batch = 8\n[cluster]\ngpus = 8\n";
  scratch.write("plans/named.toml", text + "hardware = \"../machine.toml\"\nengine = \"../engine.toml\"\n");
  scratch.write("plans/open.toml", text);
  const std::vector<std::string> words{
      "--cluster.hardware=" + fs::relative(scratch / "machine.toml").string(),
      "--cluster.engine=" + fs::relative(scratch / "engine.toml").string()};
  for (const plan::Question& question : {plan::read_question(scratch / "plans/named.toml"),
                                         plan::read_question(scratch / "plans/open.toml", words)}) {
    EXPECT_EQ(question.cluster.hardware.device.name, "h100");
    EXPECT_EQ(question.cluster.engine.name, "nemo");
  }
}

TEST(HardwareFile, NegativeAndMissingRatesAreRefusedNamingTheKey) {
  const auto folder = std::filesystem::temp_directory_path() / "penstock_hardware_test";
  std::filesystem::create_directories(folder);
  const auto refused = [&](const std::string& text) {
    std::ofstream(folder / "x.toml") << text;
    try {
      run::read_hardware_file(folder / "x.toml");
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refused("[device]\nmemory_gb = -3.0\n").find("x.toml:2: device.memory_gb"), std::string::npos);
  EXPECT_NE(refused("[device]\nmemory_gb = 1e10\n").find("must be from 0 to 1000000000"), std::string::npos);
  EXPECT_NE(refused("[device]\nmemory_gb = 80.0\n").find("device.bf16_tflops is missing"), std::string::npos);
  EXPECT_NE(refused("[device]\nmemory_bg = 80.0\n").find("device.memory_gb"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::cli
