// SPDX-License-Identifier: Apache-2.0
// What is left when a rank fails under mpirun: one clear line a rank, exit code 3, no process. Runs
// failing_rank_mpi.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/units.h"
#include "processes.h"
#include "scratch.h"

namespace penstock::comm {
namespace {

const std::string program = PENSTOCK_BINARY_DIR "/bin/failing_rank_mpi";

// One run of the program: how it ended, and what its ranks said.
class Job {
 public:
  Job(int ranks, const std::string& ending) {
    // Open MPI's own leaks would change the exit code under the address sanitizer.
    const std::string command =
        "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 1 "
        "60 "
        "mpirun --oversubscribe --bind-to none -np " +
        std::to_string(ranks) + " " + program + " '" + ending + "' >" + scratch_ / "out" + " 2>" +
        scratch_ / "err </dev/null";
    const int status = std::system(command.c_str());
    const Seconds end = seconds_now();
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    for (const std::string& line : starting_with("process ", "out")) processes.push_back(std::stoi(line));
    for (const std::string& line : starting_with("failing at ", "out")) seconds = end - std::stod(line);
    lines = starting_with("ranks: ", "err");
    std::ranges::sort(lines);
    everything = scratch_.read("err");
  }

  int exit_code = -1;
  Seconds seconds = 1e9;  // from the failure to mpirun's end
  std::vector<int> processes;
  std::vector<std::string> lines;  // of our own, sorted
  std::string everything;          // on stderr

 private:
  std::vector<std::string> starting_with(const std::string& start, const char* file) const {
    std::vector<std::string> found;
    std::istringstream text(scratch_.read(file));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(start)) found.push_back(line.substr(start.size()));
    }
    return found;
  }

  Scratch scratch_;
};

// Rank 1 says why, the others that it was rank 1.
std::vector<std::string> told_by_all(int ranks, const std::string& reason) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back("rank " + std::to_string(rank) + (rank == 1 ? ": " : ": rank 1 failed: ") + reason);
  }
  return lines;
}

class Mpirun : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(program)) << "build the target failing_rank_mpi first";
  }

  void expect_told_by_all(const std::string& ending, const std::string& reason, int exit_code) {
    const Job run(GetParam(), ending);
    EXPECT_EQ(run.lines, told_by_all(GetParam(), reason)) << run.everything;
    EXPECT_EQ(run.exit_code, exit_code) << run.everything;
    EXPECT_LT(run.seconds, kPatience);
    EXPECT_EQ(left_running(run.processes), std::vector<int>{});
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, Mpirun, ::testing::Values(2, 4));

TEST_P(Mpirun, AllIsWellWithoutAFailure) {
  const Job run(GetParam(), "well");
  EXPECT_EQ(run.exit_code, 0) << run.everything;
  EXPECT_EQ(run.processes.size(), GetParam());
  EXPECT_TRUE(run.everything.empty()) << run.everything;
}

TEST_P(Mpirun, ARankThatThrowsInAnExchangeEndsAllWithOneLineEach) {
  expect_told_by_all("throw", "the disk is full", 3);
}

TEST_P(Mpirun, ARankThatThrowsWhileOthersComputeIsHeardLater) {
  expect_told_by_all("throw while others compute", "the disk is full", 3);
}

TEST_P(Mpirun, ARankThatThrowsWhenOthersAreDoneIsStillHeard) {
  expect_told_by_all("throw at the end", "the disk is full", 3);
}

TEST_P(Mpirun, ABufferThatIsGoneIsNotTouched) {
  expect_told_by_all("throw with a send under way", "the disk is full", 3);
}

TEST_P(Mpirun, AMessageThatIsTooLongIsToldByItsReceiver) {
  const Job run(GetParam(), "send too much");
  const std::string line =
      "rank " + std::to_string(2 % GetParam()) +
      ": the message from rank 1 on channel 0 (4.77 MiB) arrived with another length: 5000001 "
      "bytes instead of 5000000";
  EXPECT_EQ(std::ranges::count(run.lines, line), 1) << run.everything;
  EXPECT_EQ(run.lines.size(), GetParam()) << run.everything;
  EXPECT_EQ(run.exit_code, 3) << run.everything;
  EXPECT_LT(run.seconds, kPatience);
}

TEST_P(Mpirun, WrongInputOnOneRankEndsAllWithExitCodeTwo) { expect_told_by_all("input", "no such file", 2); }

TEST_P(Mpirun, WrongInputOnAllRanksIsToldByEach) {
  const Job run(GetParam(), "all throw");
  EXPECT_EQ(run.lines.size(), GetParam()) << run.everything;
  EXPECT_EQ(run.exit_code, 2) << run.everything;
  EXPECT_LT(run.seconds, kPatience);
}

TEST_P(Mpirun, ARankThatAbortsIsNamedByTheOthers) {
  const Job run(GetParam(), "abort");
  auto others = told_by_all(GetParam(), "this cannot go on");
  others.erase(others.begin() + 1);
  EXPECT_EQ(run.lines, others) << run.everything;
  EXPECT_EQ(run.exit_code, 3) << run.everything;
  EXPECT_LT(run.seconds, kPatience);
}

TEST_P(Mpirun, ARankThatHangsIsNamedAndEnded) {
  const Job run(GetParam(), "hang");
  EXPECT_EQ(run.lines.size(), GetParam() - 1) << run.everything;
  // With more than two ranks, whoever gives up first may have waited for one that waits for rank 1.
  const std::string named = GetParam() == 2 ? "is rank 1 stuck?" : "is rank ";
  EXPECT_NE(run.everything.find("without progress; " + named), std::string::npos) << run.everything;
  EXPECT_EQ(run.exit_code, 3) << run.everything;
  EXPECT_LT(run.seconds, kPatience);
  EXPECT_EQ(left_running(run.processes), std::vector<int>{});
}

TEST_P(Mpirun, ARankThatIsKilledLeavesNothingRunning) {
  const Job run(GetParam(), "kill");
  EXPECT_EQ(run.processes.size(), GetParam()) << run.everything;
  EXPECT_EQ(left_running(run.processes), std::vector<int>{});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_LT(run.seconds, kPatience);
}

TEST_P(Mpirun, AnExceptionThatPassesTheWorldEndsTheJobToo) {
  const Job run(GetParam(), "uncaught");
  EXPECT_EQ(run.lines.size(), GetParam() - 1) << run.everything;
  EXPECT_EQ(run.exit_code, 3) << run.everything;
  EXPECT_LT(run.seconds, kPatience);
}

}  // namespace
}  // namespace penstock::comm
