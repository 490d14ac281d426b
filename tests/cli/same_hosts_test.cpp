// SPDX-License-Identifier: Apache-2.0
// Run directories that ranks see differently. (Hosts that write to them: tests/hosts.)
#include "cli/train/same_hosts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "comm/threads.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

// What is told of directories of these names, which two ranks see under the same one.
std::string refused_by_dry_run(const Scratch& scratch, const char* of_first, const char* of_second) {
  std::string text;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const bool first = world.rank() == 0;
    const Refusal refusal = refuse_other_run_files(scratch / (first ? of_first : of_second), world);
    if (first) text = refusal.text;
  });
  return text;
}

TEST(DryRun, RefusesADirectoryThatAnotherRankSeesWithoutTheRunFile) {
  const Scratch scratch;
  for (const char* name : {"a", "b", "empty"}) std::filesystem::create_directory(scratch / name);
  scratch.write("a/run.toml", "[train]\nsteps = 1\n");
  scratch.write("b/run.toml", "[train]\nsteps = 2\n");
  EXPECT_EQ(refused_by_dry_run(scratch, "a", "a"), "");
  EXPECT_EQ(refused_by_dry_run(scratch, "empty", "none"), "") << "there is no run yet";
  for (const char* other : {"b", "empty", "none"}) {
    const std::string text = refused_by_dry_run(scratch, "a", other);
    EXPECT_NE(text.find(" is another directory for rank 1 on host "), std::string::npos) << text;
    EXPECT_NE(text.find("output.gather = true"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace penstock::cli
