// SPDX-License-Identifier: Apache-2.0
// Commands under supervision, played by a shell.
#include "cli/supervise/child.h"

#include <gtest/gtest.h>

namespace penstock::cli {
namespace {

ChildEnd run_shell(const std::string& script) { return run_child({"sh", "-c", script}); }

TEST(SupervisedCommand, TellsItsExitCodeAndTheFirstRanksComplaint) {
  const ChildEnd end = run_shell(
      "echo 'penstock: a remark' >&2; echo 'penstock: rank 1: no room (p = 1, host b)' >&2;"
      "echo 'penstock: rank 0: rank 1 failed: no room (p = 0, host a)' >&2; exit 3");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.complaint, "rank 1: no room (p = 1, host b)");
  EXPECT_FALSE(end.stopped);
}

// As mpirun that is cut off from a host: it takes no notice of SIGTERM and waits for what never comes.
TEST(SupervisedCommand, IsEndedWhereARankHasFailedAndItGoesOn) {
  const ChildEnd end = run_shell(
      "trap '' TERM; echo 'penstock: rank 0: the link is down (p = 0, host a)' >&2; exec sleep 3600");
  EXPECT_EQ(end.exit_code, 128 + 9);
  EXPECT_EQ(end.complaint, "rank 0: the link is down (p = 0, host a)");
}

}  // namespace
}  // namespace penstock::cli
