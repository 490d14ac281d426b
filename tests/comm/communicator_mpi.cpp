// SPDX-License-Identifier: Apache-2.0
// The contract under mpirun: every rank runs this program.
#include <gtest/gtest.h>

#include "comm/contract.h"
#include "comm/launcher.h"
#include "comm/mpi_program.h"

namespace penstock::comm {
namespace {

Communicator* world = nullptr;

class Mpi : public ::testing::TestWithParam<Law> {};

TEST_P(Mpi, Keeps) {
  GetParam().holds(*world);
  world->barrier();  // so that a law that leaves something behind is the one that fails
}

INSTANTIATE_TEST_SUITE_P(Contract, Mpi, ::testing::ValuesIn(contract()),
                         [](const auto& info) { return info.param.name; });

TEST(MpiWorld, IsWhatTheLauncherSaid) {
  EXPECT_TRUE(launched_by_mpi());
  EXPECT_EQ(world->rank(), launched_rank());
  EXPECT_EQ(world->size(), launched_ranks());
  EXPECT_EQ(world->size(), local_ranks()) << "this test runs on one machine";
}

TEST(MpiWorld, IsMadeOnce) { EXPECT_THROW(make_mpi(), std::logic_error); }

TEST(MpiWorld, ErrorsOfMpiCarryItsText) {
  const auto group = world->split(0, 0);
  const std::span<const std::byte> nowhere(static_cast<const std::byte*>(nullptr), 5);
  EXPECT_EQ(failure<RunError>([&] { group->send(nowhere, group->rank(), 0); }),
            "MPI: the message to rank " + std::to_string(group->rank()) +
                " on channel 0 (5 B): MPI_ERR_BUFFER: invalid buffer pointer");
}

TEST(MpiWorld, TheLastChannelIsAsGoodAsTheFirst) {
  Correspondence letters(*world);
  letters.send(3, 254);
  letters.expect(3, 254);
  wait_all(letters.sends);
}

int run_tests(Communicator& ranks) {
  world = &ranks;
  ranks.set_timeout(30);
  return run_all_tests(ranks);
}

}  // namespace
}  // namespace penstock::comm

int main(int argc, char** argv) {
  return penstock::comm::run_on_ranks(argc, argv, penstock::comm::run_tests);
}
