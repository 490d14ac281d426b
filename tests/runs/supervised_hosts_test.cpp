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

}  // namespace
}  // namespace penstock::testing
