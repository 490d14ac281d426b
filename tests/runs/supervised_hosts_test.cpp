// SPDX-License-Identifier: Apache-2.0
// A supervised run over hosts that a script plays: it answers probes as mpirun does, and its ranks are
// threads.
#include <gtest/gtest.h>

#include <filesystem>

#include "runs/resumed_run.h"

namespace penstock::testing {
namespace {

// A host is down, or silent, while a file of this name is in the folder. A probe's agent is in a process
// group of its own, as ssh is.
constexpr const char* kMpirun = R"sh(#!/bin/sh
cd "$(dirname "$0")"
for word; do last=$word; done
while [ $# -gt 0 ] && [ "${1##*/}" != penstock ]; do
  case $1 in --host) hosts=$2 ;; -np) ranks=$2 ;; esac
  shift
done
if [ "$last" = true ]; then
  host=${hosts%:*}
  if [ -e "silent-$host" ]; then
    setsid sleep 3600 &
    echo "$$ $!" >> silent
    wait
  fi
  echo "$host" >> probes
  [ ! -e "down-$host" ]
  exit
fi
echo "$ranks on $hosts" >> starts
exec "$@" --ranks "$ranks"
)sh";

class SupervisedHosts : public ResumedRun {
 protected:
  void SetUp() override {
    ResumedRun::SetUp();
    scratch_.write("mpirun", kMpirun);
    std::filesystem::permissions(scratch_ / "mpirun", std::filesystem::perms::owner_all);
  }

  Arguments supervised(const std::string& hosts, const char* ranks, const Arguments& settings) const {
    return with({PENSTOCK_PROGRAM, "supervise", "--", scratch_ / "mpirun", "--host", hosts, "-np", ranks,
                 PENSTOCK_PROGRAM},
                arguments("run", settings));
  }

  template <class Condition>
  void wait_until(const Condition& holds) const {
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (!holds() && seconds_now() < until) sleep_a_little();
    EXPECT_TRUE(holds());
  }
  // With all ranks, in a step.
  void lose_host_b(const RunningProgram& program) const {
    wait_until([&] { return lines("run/metrics.jsonl") > 3; });
    scratch_.write("down-b", "");
    for (const int run : children_of(program.process())) kill(run, SIGKILL);
  }
  Ending end_after_restart(RunningProgram& program) const {
    wait_until([&] { return lines("starts") == 2; });
    const std::size_t before = lines("run/metrics.jsonl");
    wait_until([&] { return lines("run/metrics.jsonl") > before + 3; });
    kill(program.process(), SIGTERM);
    const Ending ending = program.wait(60);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return ending;
  }
  std::size_t lines(const std::string& file) const { return lines_of(scratch_.read(file)).size(); }
};

TEST_F(SupervisedHosts, AreProbedOnlyUntilTheEndIsAskedFor) {
  std::filesystem::create_directory(scratch_ / "tmp");
  scratch_.write("silent-a", "");
  setenv("TMPDIR", (scratch_ / "tmp").c_str(), 1);
  for (const int signal : {SIGTERM, SIGUSR1}) {
    std::filesystem::remove(scratch_ / "silent");
    RunningProgram program(supervised("a:2", "2", {}));
    wait_until([&] { return lines("silent") == 1; });
    kill(program.process(), signal);
    const Ending ending = program.wait(20);
    EXPECT_EQ(ending.exit_code, 3) << ending.err;
    EXPECT_EQ(ending.complaints(), Arguments{"asked to end"}) << ending.err;
    std::istringstream processes(scratch_.read("silent"));
    for (int process = 0; processes >> process;) EXPECT_FALSE(is_running(process));
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "tmp"))
      EXPECT_FALSE(entry.path().filename().string().starts_with("penstock-probe-")) << entry.path();
    EXPECT_EQ(lines("starts"), 0);
  }
  unsetenv("TMPDIR");
}

// Two devices, so that one host of one slot holds none of its replicas.
TEST_F(SupervisedHosts, AreWaitedForWhereThoseLeftHoldNoReplica) {
  RunningProgram program(supervised("a:1,b:1", "2", {"--parallel.dp", "auto", "--train.steps", "1000000"}));
  lose_host_b(program);
  wait_until([&] { return lines("probes") >= 6; });  // of both hosts, before each attempt and once again
  std::filesystem::remove(scratch_ / "down-b");
  const Ending ending = end_after_restart(program);
  EXPECT_EQ(lines_of(scratch_.read("starts")), (Arguments{"2 on a:1,b:1", "2 on a:1,b:1"}));
  EXPECT_NE(ending.err.find("mpirun starts nothing on b; waits for hosts with slots for a replica"),
            std::string::npos)
      << ending.err;
}

TEST_F(SupervisedHosts, AreLeftOutWhereTheOthersHoldAReplica) {
  RunningProgram program(supervised(
      "a:2,b:2", "4", {"--parallel.dp", "auto", "--numerics.replicas", "2", "--train.steps", "1000000"}));
  lose_host_b(program);
  end_after_restart(program);
  EXPECT_EQ(lines_of(scratch_.read("starts")), (Arguments{"4 on a:2,b:2", "2 on a:2"}));
}

}  // namespace
}  // namespace penstock::testing
