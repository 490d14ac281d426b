// SPDX-License-Identifier: Apache-2.0
// Commands under supervision, played by a shell.
#include "cli/supervise/child.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "base/error.h"
#include "cli/supervise/orphans.h"
#include "cli/supervise/signals.h"
#include "failure.h"
#include "processes.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

ChildEnd run_shell(const std::string& script) { return run_child({"sh", "-c", script}).value(); }

TEST(SupervisedCommand, TellsItsExitCodeAndTheFirstRanksComplaint) {
  const ChildEnd end = run_shell(
      "echo 'penstock: a remark' >&2; echo 'penstock: rank 1: no room (p = 1, host b)' >&2;"
      "echo 'penstock: rank 0: rank 1 failed: no room (p = 0, host a)' >&2; exit 3");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.complaint, "rank 1: no room (p = 1, host b)");
}

TEST(SupervisedCommand, ComplainsAfterAProgressBarAndALaunchersTag) {
  const auto complaint = [](const std::string& line) {
    return run_shell("printf '" + line + "\\n' >&2; exit 3").complaint;
  };
  EXPECT_EQ(complaint("\\r[#### ] step 4\\033[Kpenstock: rank 1: no room (p1, host b)"),
            "rank 1: no room (p1, host b)");
  EXPECT_EQ(complaint("[1,0]<stderr>:penstock: no room"), "no room");
  EXPECT_EQ(complaint("[prterun-n1-7@1,10]<stderr>: penstock: no room"), "no room");
  EXPECT_EQ(complaint("00: penstock: no room"), "no room");
  EXPECT_EQ(complaint("[1,0]<stderr>:step 4\\033[Kpenstock: no room: \\033[K!"), "no room: \033[K!");
  EXPECT_EQ(complaint("it says penstock: no room"), "");
  EXPECT_EQ(complaint(std::string(9000, 'x') + "penstock: no room"), "");
  EXPECT_EQ(complaint(std::string(9000, 'x') + "\\033[Kpenstock: no room"), "no room");
}

TEST(SupervisedCommand, DoesNotComplainByARemark) {
  EXPECT_EQ(run_shell("echo 'penstock: note: train.lr = 1 where it was 2' >&2; exit 1").complaint, "");
  EXPECT_EQ(run_shell("echo 'penstock: no room' >&2; echo 'penstock: note: slow' >&2; exit 1").complaint,
            "no room");
}

TEST(SupervisedCommand, TellsTheSignalThatEndedItButNotOfEveryGreatExitCode) {
  EXPECT_EQ(run_shell("kill -9 $$").signal, SIGKILL);
  EXPECT_EQ(run_shell("kill -34 $$").signal, 34);
  EXPECT_EQ(run_shell("exit 137").signal, SIGKILL);
  for (const char* code : {"0", "3", "128", "160", "205", "255"})
    EXPECT_EQ(run_shell(std::string("exit ") + code).signal, 0) << code;
}

// The host's other processes come and go while their parents are read.
TEST(SupervisedCommand, IsStartedWhereProcessesEndAtAnyTime) {
  const pid_t busy = fork();
  ASSERT_GE(busy, 0);
  if (busy == 0) {
    while (true) {
      const pid_t brief = fork();
      if (brief == 0) _exit(0);
      waitpid(brief, nullptr, 0);
    }
  }
  EXPECT_NO_THROW({
    for (int look = 0; look < 1000; ++look) EXPECT_TRUE(adopt_orphans().contains(busy));
  });
  kill(busy, SIGKILL);
  EXPECT_EQ(waitpid(busy, nullptr, 0), busy);
}

TEST(SupervisedCommand, IsNotStartedOnceTheEndIsAskedFor) {
  const PassingOn passing;
  EXPECT_TRUE(run_child({"true"}));
  raise(SIGUSR2);
  EXPECT_TRUE(run_child({"true"})) << "asks where the run is";
  raise(SIGUSR1);
  EXPECT_FALSE(run_child({"true"}));
}

TEST(SupervisedCommand, IsAskedToEndWhereItsSupervisorIsHungUp) {
  const PassingOn passing;
  EXPECT_EQ(run_shell("trap 'exit 7' TERM; kill -HUP $PPID; while true; do sleep 0.05; done").exit_code, 7);
  EXPECT_TRUE(asked_to_end());
}

TEST(SupervisedCommand, OutlivesHangupsThatItsSupervisorIgnores) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    const PassingOn passing;
    EXPECT_EQ(run_shell("kill -HUP $PPID; kill -HUP $$; exit 4").exit_code, 4);
    EXPECT_FALSE(asked_to_end());
  }
  signal(SIGHUP, before);
}

// As mpirun that is cut off from a host: it takes no notice of SIGTERM and waits for what never comes.
TEST(SupervisedCommand, IsEndedWhereARankHasFailedAndItGoesOn) {
  const ChildEnd end = run_shell(
      "trap '' TERM; echo 'penstock: rank 0: the link is down (p = 0, host a)' >&2; exec sleep 3600");
  EXPECT_EQ(end.exit_code, 128 + 9);
  EXPECT_EQ(end.complaint, "rank 0: the link is down (p = 0, host a)");
}

// As those of a shell that has become the supervisor by exec.
TEST(SupervisedCommand, IsWaitedForWithWhatItLeavesButNotWithOtherChildren) {
  const Scratch scratch;
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    pause();
    _exit(0);
  }
  const Seconds began = seconds_now();
  run_shell("(sleep 0.2; echo ended > " + scratch / "left" + ") 2>/dev/null &");
  EXPECT_EQ(scratch.read("left"), "ended\n");
  EXPECT_LT(seconds_now() - began, 4 * kSlowness) << "it does not wait for the other one";
  EXPECT_TRUE(is_running(other));
  kill(other, SIGKILL);
  EXPECT_EQ(waitpid(other, nullptr, 0), other);
}

TEST(SupervisedCommand, IsEndedByABrokenPipeThatItsSupervisorIgnores) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(run_shell("kill -s PIPE $$; exit 0").exit_code, 128 + SIGPIPE);
  signal(SIGPIPE, before);
}

TEST(CommandsAtOnce, AreRefusedWhereThereIsNoProcessForOne) {
  const auto without_processes = [] {
    constexpr uid_t kAnybody = 65534;  // the limit is not root's
    if (geteuid() == 0 && setuid(kAnybody) != 0) _exit(0);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    const std::string told = failure<RunError>([] { which_succeed({{"true"}}, 10); });
    _exit(told.starts_with("no process: ") ? 0 : 1);
  };
  EXPECT_EXIT(without_processes(), ::testing::ExitedWithCode(0), "");
}

TEST(CommandsAtOnce, LeaveNothingRunningWhenTheyEnd) {
  const Scratch scratch;
  const std::string leaves = "setsid sleep 3600 & echo $! >> " + scratch / "left" + "; ";
  EXPECT_EQ(which_succeed({{"sh", "-c", leaves}, {"sh", "-c", leaves + "wait"}}, 0.5),
            (std::vector<bool>{true, false}));
  std::istringstream left(scratch.read("left"));
  int process = 0, count = 0;
  for (; left >> process; ++count) EXPECT_FALSE(is_running(process));
  EXPECT_EQ(count, 2);
}

TEST(CommandsAtOnce, EndWhenTheEndIsAskedFor) {
  const PassingOn passing;
  const Seconds began = seconds_now();
  which_succeed({{"sleep", "3600"}, {"sh", "-c", "sleep 0.2; kill -TERM $PPID"}}, 600);
  EXPECT_LT(seconds_now() - began, 60);
  EXPECT_TRUE(asked_to_end());
}

// The terminal sends Ctrl-C to the supervisor and to its command; a second one would end a run without a
// checkpoint.
TEST(SupervisedCommand, IsAskedOnceByCtrlC) {
  int terminal = -1;
  const pid_t supervisor = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(supervisor, 0);
  if (supervisor == 0) {
    const PassingOn passing;
    const ChildEnd end = run_shell(
        "n=0; trap 'n=$((n+1))' INT; echo ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit $n");
    _exit(asked_to_end() ? 10 + end.exit_code : 0);
  }
  std::string said;
  std::array<char, 64> piece{};
  while (said.find("ready") == std::string::npos) {
    const ssize_t count = read(terminal, piece.data(), piece.size());
    ASSERT_GT(count, 0);
    said.append(piece.data(), static_cast<std::size_t>(count));
  }
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  int status = 0;
  waitpid(supervisor, &status, 0);
  close(terminal);
  EXPECT_EQ(WEXITSTATUS(status), 11);
}

}  // namespace
}  // namespace penstock::cli
