// SPDX-License-Identifier: Apache-2.0
// What report and simulate say of a run directory whose files are damaged or missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "cli/run_program.h"

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

  void expect_refused(const std::string& directory, const std::string& file) {
    for (const char* command : {"report", "simulate"}) {
      const Ending ending = run_program({PENSTOCK_PROGRAM, command, directory});
      EXPECT_EQ(ending.exit_code, 2) << command << " " << file << "\n" << ending.err;
      EXPECT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
      EXPECT_NE(ending.err.find(file), std::string::npos) << ending.err;
    }
  }

  Scratch scratch_;
  static inline Scratch* whole_ = nullptr;
};

constexpr const char* kRead[] = {"program.txt", "timeline.json"};  // by both commands

TEST_F(DamagedRun, WithoutAFileIsRefusedNamingIt) {
  for (const char* file : kRead)
    expect_refused(damaged(file, [](const fs::path& p) { fs::remove(p); }), file);
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

TEST_F(DamagedRun, WhoseMetricsEndInTheMiddleOfALineStillHasItsReport) {
  const std::string directory =
      damaged("metrics.jsonl", [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) - 20); });
  EXPECT_EQ(run_program({PENSTOCK_PROGRAM, "report", directory}).exit_code, 0);
}

}  // namespace
}  // namespace penstock::testing
