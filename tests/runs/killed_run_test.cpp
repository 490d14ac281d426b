// SPDX-License-Identifier: Apache-2.0
// kill -9 at any moment, of one rank or of all: a whole checkpoint is there, nothing is left running, and the
// run goes on, on another mesh, to the bits of one that was never disturbed. PENSTOCK_KILLS says how often,
// PENSTOCK_SOAK_DP and PENSTOCK_SOAK_PP how many replicas and devices at most (./dev soak).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/text.h"
#include "cli/run_program.h"
#include "train/checkpoint/directory.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 24;

std::int64_t wanted(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? parse_integer(value).value_or(otherwise) : otherwise;
}

struct Mesh {
  std::int64_t replicas = 1, devices = 2;
  const char* shard = "off";

  int ranks() const { return static_cast<int>(replicas * devices); }
};

class KilledRun : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("run.toml", small_run_file(scratch_));
    ASSERT_EQ(run_program(with_threads(2, arguments("undisturbed", {}, false))).exit_code, 0);
  }

  Arguments arguments(const std::string& directory, const Mesh& mesh, bool resume) const {
    Arguments all{"train",
                  scratch_ / "run.toml",
                  "--train.steps",
                  std::to_string(kSteps),
                  "--train.checkpoint_every",
                  "2",
                  "--train.keep_checkpoints",
                  "2",
                  "--parallel.pp",
                  std::to_string(mesh.devices),
                  "--parallel.dp",
                  std::to_string(mesh.replicas),
                  "--parallel.shard",
                  mesh.shard,
                  "--numerics.replicas",
                  "4",
                  "--output.dir",
                  scratch_ / directory};
    if (resume) all.push_back("--resume");
    return all;
  }

  std::uint64_t drawn(std::uint64_t below) { return random_bits(kKey, draws_++) % below; }

  // A power of two that the limit allows.
  std::int64_t drawn_power(const char* limit) {
    std::vector<std::int64_t> counts;
    for (std::int64_t count = 1; count <= std::clamp<std::int64_t>(wanted(limit, 2), 1, 4); count *= 2)
      counts.push_back(count);
    return counts[drawn(counts.size())];
  }

  Mesh drawn_mesh() {
    Mesh mesh{.replicas = drawn_power("PENSTOCK_SOAK_DP"), .devices = drawn_power("PENSTOCK_SOAK_PP")};
    constexpr const char* kShards[] = {"off", "optimizer", "weights"};
    mesh.shard = kShards[drawn(std::size(kShards))];
    return mesh;
  }

  // Goes on with the run in the directory on another mesh, and kills what it can at a moment that is drawn.
  // The ending when it came to its end before, nothing when it was killed.
  std::optional<Ending> go_on_and_kill() {
    const bool resume = fs::exists(scratch_ / "killed/run.toml");
    const bool mpirun = drawn(3) > 0;
    const Mesh mesh = drawn_mesh();
    SCOPED_TRACE(std::to_string(mesh.replicas) + " replicas of " + std::to_string(mesh.devices) + " devices, " +
                 mesh.shard + (mpirun ? ", mpirun" : ""));
    ++runs_on_[mesh.ranks()];
    const Arguments words = arguments("killed", mesh, resume);
    RunningProgram program(mpirun ? with_mpirun(mesh.ranks(), words) : with_threads(mesh.ranks(), words));
    wait_for_moment(program);
    const std::vector<int> targets = mpirun ? ranks_of(program.process()) : std::vector{program.process()};
    const bool all = drawn(2) == 0;
    const std::uint64_t victim = drawn(16);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (all || victim % targets.size() == i) kill(targets[i], SIGKILL);
    }
    Ending ending = program.wait(60);
    EXPECT_EQ(left_running(targets), std::vector<int>{});
    if (ending.exit_code == 0) return ending;
    EXPECT_NE(ending.exit_code, 2) << ending.err;
    return std::nullopt;
  }

  // Some steps further on, or, now and then, while the program starts.
  void wait_for_moment(const RunningProgram& program) {
    const bool early = drawn(6) == 0;
    const Seconds until = seconds_now() + (early ? static_cast<double>(drawn(1000)) / 1000 : 60.0);
    const std::size_t lines = lines_of(scratch_.read("killed/metrics.jsonl")).size() + drawn(8);
    while (seconds_now() < until && is_running(program.process())) {
      if (!early && lines_of(scratch_.read("killed/metrics.jsonl")).size() > lines) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(drawn(20000)));
  }

  void expect_whole_checkpoint() const {
    const train::CheckpointDirectory checkpoints(scratch_ / "killed/checkpoints");
    for (const std::int64_t step : checkpoints.steps()) {
      train::verify_checkpoint(checkpoints.of_step(step), train::read_checkpoint_facts(checkpoints, step), 0,
                               1);
    }
    const std::size_t lines = lines_of(scratch_.read("killed/metrics.jsonl")).size();
    had_checkpoint_ = had_checkpoint_ || !checkpoints.steps().empty();
    EXPECT_EQ(checkpoints.steps().empty(), !had_checkpoint_) << lines << " steps were done";
  }

  void expect_undisturbed_result() const {
    const Left left = left_in(scratch_, "killed"), whole = left_in(scratch_, "undisturbed");
    EXPECT_EQ(left.steps, whole.steps);
    EXPECT_TRUE(left.weights == whole.weights);
    const std::string last = "/checkpoints/step-0000" + std::to_string(kSteps);
    for (const auto& entry : fs::directory_iterator(scratch_ / ("undisturbed" + last))) {
      const std::string file = last + "/" + entry.path().filename().string();
      EXPECT_TRUE(scratch_.read("killed" + file) == scratch_.read("undisturbed" + file)) << file;
    }
  }

  static constexpr std::uint64_t kKey = 8;
  Scratch scratch_;
  std::uint64_t draws_ = 0;
  mutable bool had_checkpoint_ = false;
  std::map<int, int> runs_on_;  // by ranks
};

TEST_F(KilledRun, EndsWithTheBitsOfAnUndisturbedOne) {
  std::int64_t kills = 0, runs = 0;
  while (kills < wanted("PENSTOCK_KILLS", 10) && !HasFailure()) {
    if (const auto ending = go_on_and_kill()) {
      expect_undisturbed_result();
      fs::remove_all(scratch_ / "killed");
      had_checkpoint_ = false;
      ++runs;
    } else {
      ++kills;
      expect_whole_checkpoint();
    }
  }
  if (fs::exists(scratch_ / "killed/run.toml")) {
    const Ending last = run_program(with_threads(2, arguments("killed", {}, true)));
    EXPECT_EQ(last.exit_code, 0) << last.err;
    expect_undisturbed_result();
    ++runs;
  }
  std::cout << kills << " kills, " << runs << " runs came to their end";
  for (const auto& [ranks, count] : runs_on_) std::cout << "; " << count << " starts on " << ranks << " ranks";
  std::cout << "\n";
}

}  // namespace
}  // namespace penstock::testing
