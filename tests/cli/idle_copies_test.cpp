// SPDX-License-Identifier: Apache-2.0
// What becomes of copies in the memory of hosts that have no work. (Hosts: tests/hosts.)
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/train/copies_in_memory.h"
#include "comm/threads.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

// Whether rank 1, on a host without work, still has copies after a start of rank 0.
bool are_left(bool done, bool working_host_keeps_its_own) {
  const Scratch scratch;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const bool works = world.rank() == 0;
    run::Options options;
    options.output.dir = scratch / "run";
    options.train.buddy_dir = scratch / (works ? "a" : "b");
    options.train.buddy_every = 1;
    const std::string copies = copies_of(options, world);
    if (!works || working_host_keeps_its_own) fs::create_directories(copies);
    forget_idle_copies(options, 1, done, world);
  });
  return !fs::is_empty(scratch / "b");
}

TEST(IdleCopies, GoWithThoseOfHostsThatHaveWork) {
  EXPECT_FALSE(are_left(true, false));
  EXPECT_TRUE(are_left(true, true)) << "a run that is stopped without a checkpoint goes on from them";
  EXPECT_TRUE(are_left(false, false)) << "a start that is refused removes nothing";
}

}  // namespace
}  // namespace penstock::cli
