// SPDX-License-Identifier: Apache-2.0
// The speeds that run files are simulated with, and the profile of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "run_program.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

// A cache folder of the test's own, and a run file.
class Speeds : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (scratch_ / "cache").c_str(), 1);
    scratch_.write("run.toml", small_run_file(scratch_));
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  std::vector<std::string> profiles() const {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "cache/penstock", none))
      files.push_back(entry.path());
    return files;
  }

  Scratch scratch_;

 private:
  std::string before_;
};

TEST_F(Speeds, OfAProfileMadeByHandAreTakenForRunsDividedLikeItAndMeasuredAgainWhereItIsDamaged) {
  const Ending made = program(hasty_profile({"--ranks", "1", "--threads", "1", "--precision", "f32"}));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("f32_matrix_tflops"), std::string::npos);
  EXPECT_EQ(made.out.find("\nmatrix_tflops"), std::string::npos) << "of the one precision alone";
  ASSERT_EQ(profiles().size(), 1u);
  const auto simulated = [&](Arguments more = {}) {
    more.insert(more.begin(), {"simulate", scratch_ / "run.toml", "--parallel.pp", "1", "--train.threads",
                               "1", "--train.precision", "f32"});
    return program(more);
  };
  const Ending first = simulated();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.err, "") << "nothing is measured";
  EXPECT_TRUE(first.out.starts_with("speeds   measured on this machine for ")) << first.out;
  EXPECT_NE(first.out.find(", once, without warm-up\n"), std::string::npos) << first.out;
  EXPECT_EQ(lines_of(first.out)[0].find("assumed"), std::string::npos) << first.out;
  EXPECT_EQ(simulated().out, first.out);
  const Json speeds = Json::parse(simulated({"--json"}).out)["speeds"];
  EXPECT_TRUE(speeds["origin"].get<std::string>().starts_with("measured on this machine"));
  EXPECT_TRUE(speeds["assumed"].empty());

  std::ofstream(profiles()[0]) << "[device]\nname = \"torn";
  const Ending again = simulated({"--memory.offload_dir", "/proc/none"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  ASSERT_EQ(again.complaints().size(), 1u) << again.err;
  EXPECT_TRUE(again.complaints()[0].ends_with("it is measured again")) << again.err;
  EXPECT_NE(again.err.find("\nprofile   measuring this machine once, for "), std::string::npos) << again.err;
  EXPECT_EQ(lines_of(again.err).size(), 2u) << again.err;
  EXPECT_EQ(profiles().size(), 1u);
  EXPECT_EQ(simulated().err, "");
  EXPECT_EQ(simulated().out, again.out);
  const Ending unknown = simulated({"--memory.offload", "1", "--memory.offload_to", "disk"});
  EXPECT_EQ(unknown.exit_code, 2) << "no disk was there to be measured";
  EXPECT_NE(unknown.err.find("this machine's speeds: node.disk_gbps is missing"), std::string::npos)
      << unknown.err;
}

// As parallel.dp = "auto" leaves it to them.
TEST_F(Speeds, AreOfAsManyReplicasAsTheBatchHasGroupsWhereNobodyStartsRanks) {
  const auto swept = [&](const char* replicas) {
    return program({"simulate", scratch_ / "run.toml", "--hardware", "assumed", "--parallel.dp", replicas,
                    "--numerics.replicas", "2", "--train.batch", "8", "--sweep", "micro_batches=1,2,4"});
  };
  const Ending fitted = swept("auto");
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(fitted.out, swept("2").out);
}

TEST_F(Speeds, OfAFileAreTakenFromItAndWhatItLeavesOpenIsNamed) {
  const Ending ending = program({"simulate", scratch_ / "run.toml", "--hardware", "h100", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json speeds = Json::parse(ending.out)["speeds"];
  EXPECT_TRUE(speeds["origin"].get<std::string>().ends_with("h100.toml"));
  EXPECT_FALSE(speeds["assumed"].empty());
  EXPECT_TRUE(profiles().empty()) << "nothing is measured";
  const auto assumed = [&](const char* precision) {
    const Ending taken = program({"simulate", scratch_ / "run.toml", "--hardware", "this-machine",
                                  "--train.precision", precision, "--json"});
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    return Json::parse(taken.out)["speeds"]["assumed"].dump();
  };
  EXPECT_NE(assumed("f32").find("attention, norms and optimizer in f32 as measured in bf16"),
            std::string::npos);
  EXPECT_EQ(assumed("bf16").find("attention, norms"), std::string::npos);
  const auto in_any_order = [&](const char* hardware) {
    const Ending taken = program({"simulate", scratch_ / "run.toml", "--hardware", hardware,
                                  "--numerics.repeatable", "false", "--json"});
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    return Json::parse(taken.out)["speeds"]["assumed"].dump().find("non-deterministic attention backward");
  };
  EXPECT_NE(in_any_order("h200"), std::string::npos);
  EXPECT_EQ(in_any_order("h100"), std::string::npos) << "of no table of ours";
  EXPECT_EQ(in_any_order("this-machine"), std::string::npos);
}

TEST_F(Speeds, AreNotMeasuredForARunThatIsImpossible) {
  for (const char* command : {"train", "simulate"}) {
    const Ending ending =
        program({command, scratch_ / "run.toml", "--parallel.pp", "1", "--parallel.cp", "7"});
    EXPECT_EQ(ending.exit_code, 2);
    ASSERT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
    EXPECT_NE(ending.err.find("is not a multiple of the 2 · parallel.cp = 14 pieces"), std::string::npos)
        << ending.err;
  }
  EXPECT_TRUE(profiles().empty());
}

TEST_F(Speeds, ThatAreAssumedSaySo) {
  const Ending ending = program({"simulate", scratch_ / "run.toml", "--hardware", "assumed"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_TRUE(ending.out.starts_with("speeds   assumed, not measured; assumed: products at 100 GFLOP/s, "))
      << ending.out;
  EXPECT_TRUE(profiles().empty());
}

TEST_F(Speeds, AreMeasuredAlsoWhereTheyCannotBeKept) {
  scratch_.write("cache", "a file where the folder would be");
  const Ending ending = program({"simulate", scratch_ / "run.toml", "--memory.offload_dir", "/proc/none"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_TRUE(ending.out.starts_with("speeds   measured on this machine for ")) << ending.out;
  EXPECT_TRUE(ending.err.starts_with("profile   measuring this machine once, for ")) << ending.err;
  EXPECT_EQ(lines_of(ending.err).size(), 2u) << ending.err;
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  EXPECT_TRUE(ending.complaints()[0].ends_with("the profile is not kept")) << ending.err;
}

// All ranks choose by the speeds that rank 0 reads.
TEST_F(Speeds, ChooseAnExchangeTogether) {
  const Arguments words{"train", scratch_ / "run.toml", "--schedule.exchange", "auto"};
  const Ending first = run_program(with_mpirun(2, words), 200);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("profile   measuring this machine once"), std::string::npos) << first.err;
  EXPECT_EQ(profiles().size(), 1u);
  const Ending second = run_program(with_threads(2, {"train", scratch_ / "run.toml", "--schedule.exchange",
                                                     "auto", "--output.dir", scratch_ / "second"}),
                                    200);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.err.find("profile   measuring"), std::string::npos) << second.err;
}

// All of them are measured. Simulations, whose ranks have cores of their own, do not take what they reach.
TEST_F(Speeds, OfRanksThatShareCoresAreKeptForSuchRanks) {
  const std::string threads = std::to_string(std::thread::hardware_concurrency() / 2 + 1);
  const Ending made =
      run_program(with_mpirun(2, hasty_profile({"--threads", threads, "--precision", "bf16"})), 200);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.err.find("kept for ranks of mpirun that share cores like these: "), std::string::npos)
      << made.err;
  const Ending trained =
      run_program(with_mpirun(2, {"train", scratch_ / "run.toml", "--schedule.exchange", "auto",
                                  "--train.threads", threads, "--train.steps", "1"}),
                  200);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("profile   measuring"), std::string::npos) << trained.err;
}

// A resumed run keeps its numbers, whatever the machine's speeds would ask for then.
TEST_F(Speeds, ChooseSlicesAndChunksTogetherAndOnce) {
  const Arguments words{
      "train", scratch_ / "run.toml", "--schedule.slices", "0", "--schedule.chunks", "0", "--train.steps",
      "2",     "--output.dir",        scratch_ / "chosen"};
  EXPECT_EQ(
      run_program(with_mpirun(2, hasty_profile({"--threads", "1", "--precision", "bf16"})), 200).exit_code,
      0);
  const Ending first = run_program(with_mpirun(2, words), 200);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find(" in simulation, "), std::string::npos) << first.out;
  const std::string file = scratch_.read("chosen/run.toml");
  const auto line = [](const std::string& text, const std::string& key) {
    for (const std::string& each : lines_of(text)) {
      if (each.starts_with(key + " = ")) return each;
    }
    return std::string();
  };
  ASSERT_NE(line(file, "slices"), "") << file;
  EXPECT_NE(line(file, "slices"), "slices = 0");
  EXPECT_NE(line(file, "chunks"), "chunks = 0");

  for (const std::string& profile : profiles()) std::filesystem::remove(profile);
  Arguments resumed = words;
  *std::ranges::find(resumed, "2") = "3";
  resumed.push_back("--resume");
  const Ending second = run_program(with_threads(2, resumed), 200);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.err.find("profile   measuring"), std::string::npos) << "nothing is left to choose";
  EXPECT_EQ(line(scratch_.read("chosen/run.toml"), "slices"), line(file, "slices"));
  EXPECT_EQ(line(scratch_.read("chosen/run.toml"), "chunks"), line(file, "chunks"));
}

}  // namespace
}  // namespace penstock::testing
