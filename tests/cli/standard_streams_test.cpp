// SPDX-License-Identifier: Apache-2.0
// What is printed arrives, or the exit code says that it did not; it never goes into a file of the run.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

// The command as a shell starts it, with redirections.
Ending in_shell(Arguments command, const std::string& redirections) {
  command.insert(command.begin(), {"sh", "-c", "exec \"$0\" \"$@\" " + redirections});
  return run_program(command, 60);
}

TEST(StandardOutput, ThatIsFullIsAFailure) {
  for (const Arguments& words : {Arguments{"show", "--schedule", "slimpipe", "-p", "2", "-m", "2"},
                                 Arguments{"--help"}, Arguments{"train", "--help"}}) {
    for (const char* redirection : {">/dev/full", ">&-"}) {
      Arguments command = words;
      command.insert(command.begin(), PENSTOCK_PROGRAM);
      const Ending ending = in_shell(command, redirection);
      EXPECT_EQ(ending.exit_code, 3) << redirection;
      EXPECT_EQ(ending.err, "penstock: standard output cannot be written; is it closed, or its disk full?\n");
    }
  }
}

TEST(StandardStreams, ThatAreClosedLeaveTheFilesOfARunAlone) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = in_shell(with_threads(2, {"train", scratch / "run.toml"}), "<&- >&- 2>&-");
  EXPECT_EQ(ending.exit_code, 3) << "its table could not be printed";
  EXPECT_EQ(lines_of(scratch.read("run/metrics.jsonl")).size(), 5u);
  EXPECT_EQ(scratch.read("run/lock"), "");
  EXPECT_NE(scratch.read("run/summary.json"), "");
}

}  // namespace
}  // namespace penstock::testing
