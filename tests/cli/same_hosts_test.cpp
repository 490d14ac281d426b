// SPDX-License-Identifier: Apache-2.0
// Run directories and schedule files that ranks see differently. (Hosts that write to them: tests/hosts.)
#include "cli/train/same_hosts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/train/prepare.h"
#include "comm/threads.h"
#include "run/resolve/resolve.h"
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

// Messages match in order: ranks that have micro-batches in different orders would train on the wrong ones.
TEST(Agreement, NamesAScheduleFileThatIsAnotherOnAnotherRank) {
  const Scratch scratch;
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  options.train.batch = 2;
  options.schedule.file = scratch / "my.csv";
  Prepared prepared[2];
  const auto read = [&](Prepared& rank, const char* csv) {
    scratch.write("my.csv", csv);
    rank.run = run::resolve(options);
  };
  const auto refused = [&] {
    std::string text;
    comm::run_ranks(2, [&](comm::Communicator& world) {
      const Prepared& mine = prepared[world.rank()];
      const Refusal refusal = agree(refusal_of([&] { require_same(agreement_of(mine), world); }), world);
      if (world.rank() == 0) text = refusal.text;
    });
    return text;
  };
  read(prepared[0], "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  read(prepared[1], "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(refused(), "");
  read(prepared[1], "0F1,0F0,0B1,0B0\n1F1,1B1,1F0,1B0\n");
  const std::string text = refused();
  EXPECT_TRUE(
      text.starts_with("rank 1 was given schedule.file = \"" + (scratch / "my.csv") + "\" of checksum "))
      << text;
}

}  // namespace
}  // namespace penstock::cli
