// SPDX-License-Identifier: Apache-2.0
// What report and simulate say of a run directory whose files are damaged or missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "cli/run_program.h"
#include "files/mapped_file.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class DamagedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    whole_ = new Scratch;
    whole_->write("run.toml", small_run_file(*whole_));
    ASSERT_EQ(run_program(with_threads(2, {"train", *whole_ / "run.toml"})).exit_code, 0);
  }
  static void TearDownTestSuite() { delete whole_; }

  // A copy of the run with one file changed.
  std::string damaged(const std::string& file, const std::function<void(const fs::path&)>& damage) {
    const std::string copy = scratch_ / "copy";
    fs::remove_all(copy);
    fs::copy(*whole_ / "run", copy, fs::copy_options::recursive);
    damage(fs::path(copy) / file);
    return copy;
  }

  void expect_refused(const std::string& directory, const std::string& file,
                      const std::vector<std::string>& commands = {"report", "simulate"}) {
    for (const std::string& command : commands) {
      const Ending ending = run_program({PENSTOCK_PROGRAM, command, directory});
      EXPECT_EQ(ending.exit_code, 2) << command << " " << file << "\n" << ending.err;
      EXPECT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
      EXPECT_NE(ending.err.find(file), std::string::npos) << ending.err;
    }
  }

  // A page with the loss of every step until now, and a note with these words.
  void expect_curves_with(const std::string& directory, const std::string& words) {
    const Ending ending = run_program({PENSTOCK_PROGRAM, "report", directory});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_NE(ending.err.find(words), std::string::npos) << ending.err;
    const std::string page = files::read_text(directory + "/report.html", std::size_t{1} << 30);
    for (const std::string& part : {words, std::string(R"("name":"loss","unit":"nats","steps":[1,2,3,4,5])")})
      EXPECT_NE(page.find(part), std::string::npos) << part;
    const Ending traced =
        run_program({PENSTOCK_PROGRAM, "report", directory, "--trace", directory + "/t.json"});
    EXPECT_EQ(traced.exit_code, 2) << traced.err;
    EXPECT_NE(traced.err.find(words), std::string::npos) << traced.err;
  }

  Scratch scratch_;
  static inline Scratch* whole_ = nullptr;
};

constexpr const char* kRead[] = {"program.txt", "timeline.json"};  // by both commands

TEST_F(DamagedRun, WithoutAFileIsRefusedNamingIt) {
  for (const char* file : kRead)
    expect_refused(damaged(file, [](const fs::path& p) { fs::remove(p); }), file);
}

TEST_F(DamagedRun, ThatHasNotEndedIsRefusedWithTheWayToContinueIt) {
  const std::string directory = damaged("program.txt", [](const fs::path& p) {
    for (const char* file : {"program.txt", "timeline.json", "summary.json"})
      fs::remove(p.parent_path() / file);
  });
  for (const std::string& words :
       {std::string("the run has not ended"),
        "penstock train " + directory + "/run.toml --output.dir " + directory + " --resume"}) {
    expect_refused(directory, words, {"simulate"});
    expect_curves_with(directory, words);
  }
}

TEST_F(DamagedRun, ShowsAGapWhereTheLossIsNotFinite) {
  const auto with_losses = [&](const std::string& step_3, const std::string& others) {
    return damaged("metrics.jsonl", [&](const fs::path& p) {
      std::string text;
      for (int step = 1; step <= 5; ++step)
        text += R"({"step": )" + std::to_string(step) + R"(, "loss": )" + (step == 3 ? step_3 : others) +
                R"(, "grad_norm": 1, "tokens_per_second": 10})" + "\n";
      std::ofstream(p) << text;
    });
  };
  const auto page_of = [](const std::string& directory) {
    const Ending ending = run_program({PENSTOCK_PROGRAM, "report", directory});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return files::read_text(directory + "/report.html", std::size_t{1} << 30);
  };
  EXPECT_NE(
      page_of(with_losses("null", "2.5")).find(R"("steps":[1,2,3,4,5],"values":[2.5,2.5,null,2.5,2.5])"),
      std::string::npos);
  EXPECT_NE(page_of(with_losses("null", "null")).find("No loss is finite."), std::string::npos);
}

// Its disk was full when it wrote its end, for example.
TEST_F(DamagedRun, WhoseLastStartDidNoStepShowsNothingThatItDidNotMeasure) {
  const std::string directory = damaged("program.txt", [](const fs::path& p) {
    for (const char* file : {"program.txt", "timeline.json", "summary.json", "weights.safetensors"})
      fs::remove(p.parent_path() / file);
  });
  const auto resume = [&](const std::string& steps) {
    return run_program(with_threads(2, {"train", directory + "/run.toml", "--output.dir", directory,
                                        "--resume", "--train.steps", steps}));
  };
  const Ending end = resume("5");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_NE(end.out.find("trained   5 steps, "), std::string::npos) << end.out;
  for (const char* words : {"tokens/s", "measured", "off by"})
    EXPECT_EQ(end.out.find(words), std::string::npos) << words << "\n" << end.out;
  expect_refused(directory, "did no step, so there is no timeline.json", {"simulate"});
  expect_curves_with(directory, "did no step, so there is no timeline.json");
  EXPECT_EQ(resume("7").exit_code, 0);
  EXPECT_EQ(run_program({PENSTOCK_PROGRAM, "report", directory}).exit_code, 0);
}

TEST_F(DamagedRun, WithAFileCutShortIsRefusedNamingIt) {
  for (const char* file : kRead) {
    expect_refused(damaged(file, [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) / 2); }), file);
    expect_refused(damaged(file, [](const fs::path& p) { fs::resize_file(p, 0); }), file);
  }
}

TEST_F(DamagedRun, WithBytesThatAreNoTextIsRefusedNamingTheFile) {
  for (const char* file : kRead) {
    expect_refused(
        damaged(file, [](const fs::path& p) { std::ofstream(p, std::ios::binary) << "\xff\x01\x1b[2J\x80"; }),
        file);
  }
}

TEST_F(DamagedRun, WithTheTimelineOfAnotherRunIsRefusedNamingTheRank) {
  const std::string directory = damaged("timeline.json", [](const fs::path& p) {
    std::ofstream(p) << R"({"steps": [{"step": 5, "devices": [[[0, 1]], [[0, 1]]]}]})";
  });
  const Ending ending = run_program({PENSTOCK_PROGRAM, "report", directory});
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  EXPECT_NE(ending.err.find("step 5, rank 0"), std::string::npos) << ending.err;
}

// As it is when a run has gone on with other settings since its last end.
TEST_F(DamagedRun, WhoseRunFileHasAnotherMeshOrSlicesThanItsProgramIsRefused) {
  for (const auto& [before, after] : {std::pair{"pp = 2", "pp = 4"},
                                      {"pp = 2", "pp = 1"},
                                      {"slices = 4", "slices = 2"},
                                      {"batch = 4", "batch = 8"}}) {
    const std::string directory = damaged("run.toml", [&](const fs::path& p) {
      std::ifstream file(p);
      std::string text(std::istreambuf_iterator<char>(file), {});
      ASSERT_NE(text.find(before), std::string::npos) << text;
      text.replace(text.find(before), std::string_view(before).size(), after);
      std::ofstream(p) << text;
    });
    expect_refused(directory, "program.txt: has another mesh, other slices or other micro-batches");
  }
}

// Every op of the timeline changed.
void change_ops(const fs::path& timeline, const std::function<void(nlohmann::json&)>& change) {
  std::ifstream file(timeline);
  nlohmann::json document = nlohmann::json::parse(file);
  for (auto& step : document["steps"]) {
    for (auto& device : step["devices"]) {
      for (auto& op : device) change(op);
    }
  }
  std::ofstream(timeline) << document;
}

TEST_F(DamagedRun, WithoutProcessorSecondsIsNotSimulatedFromThem) {
  const auto simulated = [&](const std::function<void(nlohmann::json&)>& change) {
    const std::string directory = damaged("timeline.json", [&](const fs::path& p) { change_ops(p, change); });
    return run_program({PENSTOCK_PROGRAM, "simulate", directory, "--processor-time", "--json"});
  };
  const Ending whole = simulated([](auto&) {});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto busy = nlohmann::json::parse(whole.out)["devices"][0]["busy_s"].get<double>();
  const Ending doubled = simulated([](auto& op) {
    if (op.size() == 3) op[2] = 2 * op[2].template get<double>();
  });
  EXPECT_NEAR(nlohmann::json::parse(doubled.out)["devices"][0]["busy_s"].get<double>(), 2 * busy, 1e-9);
  const Ending without = simulated([](auto& op) { op = {op[0], op[1]}; });
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("timeline.json: has no processor seconds"), std::string::npos) << without.err;
  EXPECT_EQ(simulated([](auto& op) { op = {op[0], op[1], -1.0}; }).exit_code, 2);
}

TEST_F(DamagedRun, WhoseMetricsEndInTheMiddleOfALineStillHasItsReport) {
  const std::string directory =
      damaged("metrics.jsonl", [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) - 20); });
  EXPECT_EQ(run_program({PENSTOCK_PROGRAM, "report", directory}).exit_code, 0);
}

TEST(ScheduleOfARun, OutlivesItsFileAndMovesWithTheDirectory) {
  const Scratch scratch;
  std::string file = small_run_file(scratch);
  for (const std::string line : {"name = \"slimpipe\"\n", "slices = 4\n"})
    file.erase(file.find(line), line.size());
  scratch.write("run.toml", file);
  scratch.write("my.csv",
                program({"show", "--schedule", "1f1b", "-p", "2", "-m", "4", "--format", "csv"}).out);
  const Ending trained = program({"train", scratch / "run.toml", "--ranks", "2", "--train.checkpoint_every",
                                  "5", "--schedule.file", scratch / "my.csv"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(scratch.read("run/schedule.csv"), scratch.read("my.csv"));
  fs::remove(scratch / "my.csv");
  const auto resume = [&](const char* run_file, const char* steps, const Arguments& more) {
    return program(
        with({"train", scratch / run_file, "--resume", "--ranks", "2", "--train.steps", steps}, more));
  };
  const Ending resumed = resume("run/run.toml", "6", {});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resume("run.toml", "7", {"--schedule.file", scratch / "my.csv"}).exit_code, 2) << "named now";
  std::string named = file;
  named.replace(named.find("[schedule]\n"), 11, "[schedule]\nfile = \"" + scratch / "my.csv" + "\"\n");
  scratch.write("named.toml", named);
  const Ending again = resume("named.toml", "7", {});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  fs::rename(scratch / "run", scratch / "moved");
  EXPECT_EQ(program({"show", scratch / "moved/run.toml", "--format", "csv"}).out,
            scratch.read("moved/schedule.csv"));
  for (const char* command : {"simulate", "report"}) {
    const Ending ending = program({command, scratch / "moved"});
    EXPECT_EQ(ending.exit_code, 0) << command << ending.err;
  }
  const std::vector<std::string> rows = lines_of(scratch.read("moved/schedule.csv"));
  ASSERT_EQ(rows.size(), 2u);
  scratch.write("moved/schedule.csv", rows[1] + "\n" + rows[0] + "\n");
  EXPECT_NE(program({"simulate", scratch / "moved"}).err.find("its stages on other devices"),
            std::string::npos);
  const Ending by_name =
      resume("run.toml", "8",
             {"--output.dir", scratch / "moved", "--schedule.name", "1f1b", "--schedule.slices", "1"});
  EXPECT_EQ(by_name.exit_code, 0) << by_name.err;
  EXPECT_FALSE(fs::exists(scratch / "moved/schedule.csv"));
}

}  // namespace
}  // namespace penstock::testing
