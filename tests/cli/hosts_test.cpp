// SPDX-License-Identifier: Apache-2.0
// The hosts in mpirun's words, and the words for those that are left.
#include "cli/supervise/hosts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

const MpirunCommand kProgram{"penstock", "train", "run.toml", "-np", "9"};

MpirunCommand with_program(MpirunCommand words) {
  words.insert(words.end(), kProgram.begin(), kProgram.end());
  return words;
}

TEST(NamedHosts, AreThoseOfALine) {
  const MpirunCommand command = with_program({"/usr/bin/mpirun", "-np", "4", "--host", "a:2,b,b,c:1"});
  const auto named = named_hosts(command);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->hosts, (std::vector<NamedHost>{{"a", 2}, {"b", 2}, {"c", 1}}));
  EXPECT_EQ(on_hosts(command, *named, {{"a", 2}, {"c", 1}}),
            with_program({"/usr/bin/mpirun", "-np", "3", "--host", "a:2,c:1"}));
}

TEST(NamedHosts, AreThoseOfAllLines) {
  const MpirunCommand command = with_program({"mpirun", "--host", "a:2,b", "-np", "4", "-H", "c,a"});
  const auto named = named_hosts(command);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->hosts, (std::vector<NamedHost>{{"a", 3}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(on_hosts(command, *named, {{"a", 3}, {"c", 1}}),
            with_program({"mpirun", "--host", "a:3,c:1", "-np", "4"}));
  const Scratch scratch;
  scratch.write("hosts", "a slots=2\nb slots=2\n");
  const auto filtered =
      named_hosts(with_program({"mpirun", "--hostfile", scratch / "hosts", "--host", "b:2"}));
  EXPECT_EQ(filtered->hosts, (std::vector<NamedHost>{{"b", 2}})) << "as mpirun understands it";
}

TEST(NamedHosts, AreThoseOfAFile) {
  const Scratch scratch;
  scratch.write("hosts", "# all\nn1 slots=4 max_slots=9\n\n n2  slots=4 # far\nn3 slots=4\n");
  const MpirunCommand command = with_program({"mpirun", "--hostfile", scratch / "hosts", "-n", "8"});
  const auto named = named_hosts(command);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->hosts, (std::vector<NamedHost>{{"n1", 4}, {"n2", 4}, {"n3", 4}}));
  EXPECT_EQ(on_hosts(command, *named, {{"n3", 4}}), with_program({"mpirun", "--host", "n3:4", "-n", "4"}));
  scratch.write("hosts", "n1\nn2\n");
  const auto untold = named_hosts(command);
  const MpirunCommand left = on_hosts(command, *untold, {{"n2", 0}});
  EXPECT_EQ(left, with_program({"mpirun", "--host", "n2:*", "-n", "4"}));
  EXPECT_EQ(named_hosts(left)->hosts, (std::vector<NamedHost>{{"n2", 0}}));
  scratch.write("hosts", "n1\tslots=2\r\n\r\nn2 max_slots=9 slots = 3\r\n");
  EXPECT_EQ(named_hosts(command)->hosts, (std::vector<NamedHost>{{"n1", 2}, {"n2", 3}}));
}

TEST(NamedHosts, AreNoneWhereNoneAreNamed) {
  EXPECT_FALSE(named_hosts(with_program({"mpirun", "-np", "2"})));
  EXPECT_FALSE(named_hosts({"penstock", "train", "run.toml", "--host", "a"}));
  EXPECT_FALSE(named_hosts({"bash", "launch.sh", "--host", "a"}));
  EXPECT_FALSE(named_hosts({}));
}

TEST(NamedHosts, RefuseWhatIsNoHostFile) {
  const Scratch scratch;
  scratch.write("hosts", "n1 slots=many\n");
  EXPECT_NE(failure<InputError>([&] {
              named_hosts(with_program({"mpirun", "--hostfile", scratch / "hosts"}));
            }).find("host n1: \"many\" is no number of slots"),
            std::string::npos);
  EXPECT_NE(failure<InputError>([&] {
              named_hosts(with_program({"mpirun", "--hostfile", scratch / "none"}));
            }).find("none: "),
            std::string::npos);
  EXPECT_NE(failure<InputError>([&] { named_hosts(with_program({"mpirun", "-H", "a:0"})); }), "");
}

TEST(NamedHosts, HaveSlotsForTheRanksThatAreAskedFor) {
  const auto refused = [](const MpirunCommand& words) {
    const MpirunCommand command = with_program(words);
    return failure<InputError>([&] { require_slots(command, *named_hosts(command)); });
  };
  EXPECT_EQ(refused({"mpirun", "-np", "5", "--host", "a:2,b:2"}),
            "-np 5 asks for more ranks than the 4 slots of --host a:2,b:2");
  EXPECT_EQ(refused({"mpirun", "-np", "4", "--host", "a:2,b:2"}), "");
  EXPECT_EQ(refused({"mpirun", "--oversubscribe", "-np", "5", "--host", "a,b"}), "");
  EXPECT_EQ(refused({"mpirun", "--host", "a,b"}), "");
}

TEST(NamedHosts, AreProbedByTheSameLauncher) {
  const MpirunCommand command =
      with_program({"mpirun", "--mca", "plm_rsh_agent", "agent", "--host", "a:2,b:2"});
  EXPECT_EQ(probe(command, {"b", 2}, "/x"),
            (MpirunCommand{"mpirun", "--mca", "orte_local_tmpdir_base", "/x", "--mca", "plm_rsh_agent",
                           "agent", "--host", "b:1", "-np", "1", "true"}));
}

}  // namespace
}  // namespace penstock::cli
