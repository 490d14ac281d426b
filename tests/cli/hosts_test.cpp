// SPDX-License-Identifier: Apache-2.0
// The hosts in mpirun's words, and the words for those that are left.
#include "cli/supervise/hosts.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "cli/supervise/command_words.h"
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
            }).find("host n1: \"many\" is not a number of slots"),
            std::string::npos);
  EXPECT_NE(failure<InputError>([&] {
              named_hosts(with_program({"mpirun", "--hostfile", scratch / "none"}));
            }).find("none: "),
            std::string::npos);
  EXPECT_NE(failure<InputError>([&] { named_hosts(with_program({"mpirun", "-H", "a:0"})); }), "");
}

TEST(NamedHosts, HaveSlotsForTheRanksThatAreAskedFor) {
  for (const char* setting : {"OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_rmaps_base_mapping_policy"})
    unsetenv(setting);
  const auto refused = [](const MpirunCommand& words) {
    const MpirunCommand command = with_program(words);
    return failure<InputError>([&] { require_slots(command, *named_hosts(command)); });
  };
  EXPECT_EQ(refused({"mpirun", "-np", "5", "--host", "a:2,b:2"}),
            "-np 5 asks for more ranks than the 4 slots of --host a:2,b:2");
  for (const char* option : {"--np", "-n", "--n", "-c"})
    EXPECT_NE(refused({"mpirun", option, "5", "--host", "a:2,b:2"}), "") << option;
  EXPECT_EQ(refused({"mpirun", "-np", "4", "--host", "a:2,b:2"}), "");
  EXPECT_EQ(refused({"mpirun", "--host", "a,b"}), "");
  const auto refused_with = [&](MpirunCommand words) {
    words.insert(words.begin(), "mpirun");
    words.insert(words.end(), {"-np", "5", "--host", "a,b"});
    return refused(words) != "";
  };
  const std::vector<MpirunCommand> more{{"--oversubscribe"},
                                        {"-oversubscribe"},
                                        {"--map-by", "node:OVERSUBSCRIBE"},
                                        {"-map-by", "slot:PE=2,Oversubscribe"},
                                        {"--mca", "rmaps_base_oversubscribe", "1"},
                                        {"-gmca", "rmaps_base_oversubscribe", "true"},
                                        {"--mca", "rmaps_base_mapping_policy", ":over"}};
  for (const MpirunCommand& words : more)
    EXPECT_FALSE(refused_with(words)) << words.front() << " " << words.back();
  const std::vector<MpirunCommand> no_more{{"--nooversubscribe"},
                                           {"--map-by", "node:NOOVERSUBSCRIBE"},
                                           {"--mca", "rmaps_base_oversubscribe", "0"}};
  for (const MpirunCommand& words : no_more)
    EXPECT_TRUE(refused_with(words)) << words.front() << " " << words.back();
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  EXPECT_FALSE(refused_with({}));
  unsetenv("OMPI_MCA_rmaps_base_oversubscribe");
}

// Options after it are the program's: those of nice, and of penstock.
TEST(NamedHosts, AreAskedForBeforeTheProgram) {
  MpirunCommand command{"mpirun", "--bind-to", "none", "--mca", "a",  "b", "--host",
                        "vm:2",   "nice",      "-n",   "10",    "-H", "b"};
  command.insert(command.end(), kProgram.begin(), kProgram.end());
  const auto named = named_hosts(command);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->hosts, (std::vector<NamedHost>{{"vm", 2}}));
  EXPECT_EQ(failure<InputError>([&] { require_slots(command, *named); }), "");
  EXPECT_EQ(ranks_on(command, named->hosts), 2);
}

TEST(CommandWords, AreThoseOfTrainWhereverThatWordIs) {
  EXPECT_EQ(train_word({"env", "-C", "train", "/a/penstock", "train", "r.toml"}), 4);
  EXPECT_EQ(train_word({"train", "penstock-compute", "train"}), 2);
  EXPECT_EQ(train_word({"sh", "mine", "train", "train"}), 2);
  EXPECT_EQ(train_word({"true"}), 1);
}

TEST(CommandWords, NameTheDirectoryOfMpirunsProgram) {
  for (const char* option : {"--wdir", "-wdir", "--wd", "-wd"})
    EXPECT_EQ(directory_asked(with_program({"mpirun", "-x", "A", option, "/d"})), "/d");
  EXPECT_EQ(directory_asked(with_program({"mpirun", "-np", "2", "nice", "-wd", "/d"})), "");
  EXPECT_EQ(directory_asked(with_program({"env", "-wd", "/d"})), "");
}

TEST(NamedHosts, ThatAreLeftHaveTheirShareOfMoreRanksThanSlots) {
  const MpirunCommand command = with_program({"mpirun", "-oversubscribe", "-np", "6", "--host", "a,b,c"});
  EXPECT_EQ(on_hosts(command, *named_hosts(command), {{"a", 1}, {"c", 1}}),
            with_program({"mpirun", "-oversubscribe", "-np", "4", "--host", "a:1,c:1"}));
}

TEST(NamedHosts, TellTheNumberOfRanksWhereItIsKnown) {
  const auto ranks = [](const MpirunCommand& words, int slots) {
    return ranks_on(with_program(words), {{"a", slots}, {"b", slots}});
  };
  EXPECT_EQ(ranks({"mpirun", "--host", "a:2,b:2", "-np", "3"}, 2), 3);
  EXPECT_EQ(ranks({"mpirun", "--host", "a:2,b:2"}, 2), 4);
  EXPECT_EQ(ranks({"mpirun", "--host", "a:*,b:*"}, 0), std::nullopt);
  EXPECT_EQ(ranks({"mpirun", "--map-by", "ppr:4:node:OVERSUBSCRIBE", "--host", "a,b"}, 1), std::nullopt);
  EXPECT_EQ(ranks({"mpirun", "--map-by", "ppr:4:node", "--host", "a:8,b:8"}, 8), std::nullopt);
  for (const char* option : {"-N", "-npernode", "--npersocket"})
    EXPECT_EQ(ranks({"mpirun", option, "4", "--host", "a:8,b:8"}, 8), std::nullopt) << option;
}

TEST(NamedHosts, AreProbedByTheSameLauncher) {
  const MpirunCommand reach{"--mca",     "plm_rsh_agent",  "agent", "--prefix",
                            "/opt/mpi",  "--launch-agent", "orted", "--allow-run-as-root",
                            "--prtemca", "plm_ssh_agent",  "agent"};
  MpirunCommand words{"mpirun", "--bind-to", "none"};
  MpirunCommand wanted{"mpirun", "--mca", "orte_local_tmpdir_base", "/x"};
  for (MpirunCommand* all : {&words, &wanted}) all->insert(all->end(), reach.begin(), reach.end());
  words.insert(words.end(), {"--host", "a:2,b:2"});
  wanted.insert(wanted.end(), {"--host", "b:1", "-np", "1", "true"});
  EXPECT_EQ(probe(with_program(words), {"b", 2}, "/x"), wanted);
}

}  // namespace
}  // namespace penstock::cli
