// SPDX-License-Identifier: Apache-2.0
// What is concluded from the environments that launchers make.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "comm/launcher.h"
#include "comm/mpi.h"

namespace penstock::comm {
namespace {

// The launchers' variables as given, all others gone, until the end of the test.
class Launcher : public ::testing::Test {
 protected:
  Launcher() {
    for (const char* name : known) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
  }
  ~Launcher() override {
    for (const char* name : known) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

  struct Seen {
    bool launched;
    int rank, ranks, local;
    bool operator==(const Seen&) const = default;
  };
  using Variables = std::map<std::string, std::string>;
  template <class Ask>
  static auto with(const Variables& variables, Ask&& ask) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const auto result = ask();
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    return result;
  }
  static Seen seen(const Variables& variables) {
    return with(variables, [] {
      return Seen{launched_by_mpi(), launched_rank(), launched_ranks(), local_ranks()};
    });
  }

 private:
  static constexpr const char* known[] = {"OMPI_COMM_WORLD_SIZE",
                                          "OMPI_COMM_WORLD_RANK",
                                          "OMPI_COMM_WORLD_LOCAL_SIZE",
                                          "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID",
                                          "SLURM_LOCALID",
                                          "PMI_SIZE",
                                          "PMI_RANK",
                                          "MPI_LOCALNRANKS",
                                          "PMIX_RANK",
                                          "SLURM_PROCID",
                                          "SLURM_STEP_NUM_TASKS"};
  std::map<std::string, std::string> before_;
};

TEST_F(Launcher, NoneMeansOneRank) { EXPECT_EQ(seen({}), (Seen{false, 0, 1, 1})); }

TEST_F(Launcher, OpenMpiTellsRankSizeAndLocalSize) {
  EXPECT_EQ(seen({{"OMPI_COMM_WORLD_SIZE", "8"},
                  {"OMPI_COMM_WORLD_RANK", "5"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
            (Seen{true, 5, 8, 4}));
}

TEST_F(Launcher, OneRankUnderMpirunIsLaunchedToo) {
  EXPECT_EQ(seen({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}), (Seen{true, 0, 1, 1}));
}

TEST_F(Launcher, MpichTellsRankSizeAndLocalSize) {
  EXPECT_EQ(seen({{"PMI_SIZE", "3"}, {"PMI_RANK", "2"}, {"MPI_LOCALNRANKS", "3"}}), (Seen{true, 2, 3, 3}));
}

TEST_F(Launcher, SrunTellsRankAndSize) {
  EXPECT_EQ(seen({{"SLURM_PROCID", "6"}, {"SLURM_STEP_NUM_TASKS", "16"}}), (Seen{true, 6, 16, 1}));
}

TEST_F(Launcher, EveryLauncherTellsTheNumberOnTheMachine) {
  EXPECT_EQ(launched_local_rank(), 0);
  const Variables open_mpi{{"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"SLURM_LOCALID", "0"}};  // of the batch script
  const Variables mpich{{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "1"}};
  const Variables srun{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}};
  for (const Variables& variables : {open_mpi, mpich, srun})
    EXPECT_EQ(with(variables, launched_local_rank), 1) << variables.begin()->first;
}

TEST_F(Launcher, ABatchScriptOfSlurmIsNoRank) {
  EXPECT_EQ(seen({{"SLURM_PROCID", "0"}}), (Seen{false, 0, 1, 1}));
  EXPECT_EQ(seen({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), (Seen{false, 0, 1, 1}));
}

TEST_F(Launcher, NonsenseIsNoRank) {
  EXPECT_EQ(seen({{"OMPI_COMM_WORLD_SIZE", "many"}}), (Seen{false, 0, 1, 1}));
}

// What a child that may use so many processors has of them as one of `ranks`, where this process may use
// `of`.
int processors(int own, int of, int ranks) {
  const auto restrict_to = [](int count) {
    cpu_set_t all, some;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&some);
    for (int cpu = 0; CPU_COUNT(&some) < count; ++cpu) {
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &some);
    }
    sched_setaffinity(0, sizeof(some), &some);
  };
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  restrict_to(of);
  const pid_t child = fork();
  if (child == 0) {
    restrict_to(own);
    _exit(processors_of_rank(ranks));
  }
  int status = 0;
  waitpid(child, &status, 0);
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// Of sockets, too, to which mpirun binds several ranks together.
TEST_F(Launcher, LeavesARankWhatItIsBoundToAndItsShareOfTheHost) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof(set), &set);
  if (CPU_COUNT(&set) < 2) GTEST_SKIP() << "one processor cannot be divided; no command enables it";
  EXPECT_EQ(processors(2, 2, 1), 2) << "no rank";
  EXPECT_EQ(processors(2, 2, 2), 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(processors(1, 2, 1), 1) << "bound to a processor";
  EXPECT_EQ(processors(1, 2, 2), 1);
  EXPECT_EQ(processors(2, 2, 2), 1) << "bound together, or not at all";
  EXPECT_EQ(processors(1, 1, 2), 1) << "the job has one of the host's processors";
}

}  // namespace
}  // namespace penstock::comm
