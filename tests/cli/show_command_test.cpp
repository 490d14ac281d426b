// SPDX-License-Identifier: Apache-2.0
// penstock show and check, and what they say of command lines that are wrong.
#include <gtest/gtest.h>

#include <regex>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

Ending show(Arguments arguments) {
  arguments.insert(arguments.begin(), {PENSTOCK_PROGRAM, "show"});
  return run_program(arguments, 60);
}

void expect_refusal(const Ending& ending, const std::string& says) {
  EXPECT_EQ(ending.exit_code, 2) << ending.out;
  EXPECT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
  EXPECT_NE(ending.err.find(says), std::string::npos) << ending.err;
  EXPECT_EQ(ending.out, "");
}

TEST(ShowCommand, PrintsSchedulesThatCheckFindsLegal) {
  const Scratch scratch;
  for (const std::string& slices : {std::string("4"), std::string("8,4,16")}) {
    const Ending shown =
        show({"--schedule", "slimpipe", "-p", "4", "-m", "3", "-n", slices, "--format", "csv"});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    scratch.write("schedule.csv", shown.out);
    const Ending checked = run_program({PENSTOCK_PROGRAM, "check", scratch / "schedule.csv"});
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  }
}

// The schedule is legal, but not in slots: visits would wait for each other.
TEST(ShowCommand, RefusesVisitsOfTheVocabularyWhereTheyWouldDeadlock) {
  const Scratch scratch;
  scratch.write("mine.csv",
                "0F0.0,3F0.0,0F0.1,3F0.1,3B0.1,0B0.1,3B0.0,0B0.0\n"
                "1F0.0,4F0.0,1F0.1,4F0.1,4B0.1,1B0.1,4B0.0,1B0.0\n"
                "2F0.0,5F0.0,2F0.1,5F0.1,5B0.1,2B0.1,5B0.0,2B0.0\n");
  for (const Arguments& form : {Arguments{"--format", "svg"}, {"--format", "trace"}, {"--program"}}) {
    EXPECT_EQ(show(with({scratch / "mine.csv"}, form)).exit_code, 0);
    expect_refusal(show(with({scratch / "mine.csv", "--vocabulary-parallel"}, form)),
                   "mine.csv has none: use slimpipe");
  }
}

TEST(ShowCommand, TakesAFileAfterItsFlags) {
  const Scratch scratch;
  scratch.write("mine.csv", "0F0,0B0\n");
  const Ending both = show({"--schedule", "slimpipe", "-p", "2", "-m", "2", "-n", "8", scratch / "mine.csv"});
  expect_refusal(both, "give either a file or --schedule, not both");
}

// Of a mesh that train does not run yet too.
TEST(ShowCommand, PrintsTheProgramOfARunFile) {
  const Scratch scratch;
  scratch.write("run.toml", "[parallel]\npp = 2\ndp = 2\ntp = 4\n[schedule]\nslices = 2\n");
  const Ending ending = run_program({PENSTOCK_PROGRAM, "show", scratch / "run.toml", "--program"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("1REDUCE_GRAD over replica bytes "), std::string::npos) << ending.out;
  EXPECT_NE(run_program({PENSTOCK_PROGRAM, "show", scratch / "run.toml"}).out.find("slimpipe: 2 devices"),
            std::string::npos);
}

TEST(ShowCommand, DrawsTheExchangesOfARunFileAsThoseOfFlags) {
  const Scratch scratch;
  const std::string run = "[parallel]\npp = 4\n[train]\nbatch = 2\n[schedule]\nslices = 8\n";
  scratch.write("run.toml", run + "exchange = \"levelled\"\n");
  scratch.write("plain.toml", run);
  const std::string shown = show({scratch / "run.toml"}).out;
  const std::string by_flags =
      show({"--schedule", "slimpipe", "-p", "4", "-m", "2", "-n", "8", "--exchange", "levelled"}).out;
  const auto notes_and_grid = [](const std::string& text) { return text.substr(text.find("exchange lev")); };
  EXPECT_EQ(notes_and_grid(shown), notes_and_grid(by_flags)) << shown;
  EXPECT_EQ(show({scratch / "plain.toml"}).out.find("exchange levelled"), std::string::npos);
}

// As with --offload: a share of what a copy of the whole record takes. Of a run's records a part stays.
TEST(ShowCommand, DrawsTheCopiesOfARunFileWithTheirTimes) {
  const Scratch scratch;
  scratch.write("run.toml",
                "[parallel]\npp = 2\n[schedule]\nslices = 4\n[memory]\noffload = 1.0\n[train]\nbatch = 2\n");
  for (const Ending& shown : {show({scratch / "run.toml", "--format", "svg"}),
                              show({"--schedule", "slimpipe", "-p", "2", "-m", "2", "-n", "4", "--offload",
                                    "1", "--format", "svg"})}) {
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_TRUE(
        std::regex_search(shown.out, std::regex("OFFLOAD0.0 on device 0, from 1 for (0[.][0-9]+|1)<")))
        << shown.out;
    EXPECT_NE(shown.out.find("time units (F = 1, B = 2"), std::string::npos);
  }
}

TEST(ShowCommand, SaysOfARunFileWhatItSaysOfItsScheduleByFlags) {
  const Scratch scratch;
  scratch.write("run.toml", "[parallel]\npp = 2\n[schedule]\nname = \"dualpipe\"\n");
  const std::string note = "every stage lives on two devices: two copies of the parameters\n";
  EXPECT_NE(show({"--schedule", "dualpipe", "-p", "2", "-m", "8"}).out.find(note), std::string::npos);
  const std::string shown = show({scratch / "run.toml", "--format", "grid"}).out;
  EXPECT_NE(shown.find(note), std::string::npos) << shown;
}

TEST(ShowCommand, NamesTheNumberThatIsNone) {
  const auto with = [](const std::string& flag, const std::string& value) {
    return show({"--schedule", "slimpipe", "-p", "2", "-m", "2", flag, value});
  };
  for (const char* flag : {"-p", "-m", "-n", "-v"}) {
    for (const char* value : {"0", "-3", "1.5", "1e9", "nan", "two", "99999999999999999999"}) {
      expect_refusal(with(flag, value), "\"" + std::string(value) + "\" must be a whole number from 1 to ");
    }
  }
  expect_refusal(with("--group", "-1"), "\"-1\" must be a whole number from 0 to ");
  expect_refusal(with("-n", "8,0"), "\"0\" must be a whole number from 1 to ");
  for (const char* list : {"8,", ",8", "8,,4", ","})
    expect_refusal(with("-n", list), "\"\" must be a whole number from 1 to ");
}

TEST(ShowCommand, NamesTheFlagThatIsMissing) {
  expect_refusal(show({"--schedule", "slimpipe"}), "-p is missing; give the number of devices");
  expect_refusal(show({"--schedule", "slimpipe", "-p", "2"}), "-m is missing; give the number of micro-bat");
}

TEST(ShowCommand, RefusesFlagsThatDoNothing) {
  const Arguments compare{"--compare", "-p", "4", "-m", "2", "-n", "8"};
  for (const Arguments& more : {Arguments{"-v", "2"},
                                {"--group", "4"},
                                {"--offload", "0.5"},
                                {"--exchange-limit", "4"},
                                {"--memory-limit", "2"},
                                {"--forward", "2"},
                                {"--transfer", "0.1"},
                                {"--costs", "costs"},
                                {"schedule.csv"}})
    expect_refusal(show(with(compare, more)), " excludes --compare");
  expect_refusal(show(with({"--compare", "-p", "4", "-m", "2"}, {"-n", "8,4"})),
                 "-n lists 2 micro-batches; --compare takes one number for all");
  const Arguments slimpipe{"--schedule", "slimpipe", "-p", "2", "-m", "2", "-n", "4"};
  for (const char* format : {"grid", "csv", "json"})
    expect_refusal(show(with(slimpipe, {"--offload", "0.5", "--format", format})),
                   "--offload needs a program: add --program, --format svg or --format trace");
  expect_refusal(show(with(slimpipe, {"--memory-limit", "2"})), "--memory-limit works only with greedy");
  expect_refusal(show(with(slimpipe, {"--exchange-limit", "4"})),
                 "--exchange-limit needs --exchange paired or levelled");
}

TEST(ShowCommand, DrawsTheRanksOfAMesh) {
  const auto drawn = [](const std::string& format) {
    const Ending ending =
        show({"--mesh", "-p", "2", "-d", "2", "-t", "2", "--gpus-per-node", "4", "--format", format});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return ending.out;
  };
  EXPECT_TRUE(drawn("text").starts_with("8 ranks: pipeline 2, data 2, tensor 2; 2 nodes of 4\n"))
      << drawn("text");
  EXPECT_EQ(drawn("text"), show({"--mesh", "-p", "2", "-d", "2", "-t", "2", "--gpus-per-node", "4"}).out);
  EXPECT_TRUE(drawn("svg").starts_with("<svg ")) << drawn("svg");
  const auto json = nlohmann::json::parse(drawn("json"));
  EXPECT_EQ(json["groups"]["pipeline"].dump(), "[[0,4],[1,5],[2,6],[3,7]]");
  EXPECT_EQ(json["ranks"][5]["node"], 1);
}

TEST(ShowCommand, NamesWhatIsWrongWithAMesh) {
  expect_refusal(show({"--mesh", "-p", "2", "-d", "4", "-e", "3"}),
                 "= 3 does not divide tp·cp·dp = 4; use 2 or 4");
  expect_refusal(show({"--mesh", "-p", "2", "--schedule", "1f1b"}), "--schedule excludes --mesh");
  expect_refusal(show({"--mesh", "-p", "2", "-m", "4"}), "--micro-batches excludes --mesh");
  expect_refusal(show({"--mesh", "schedule.csv"}), "file excludes --mesh");
  expect_refusal(show({"--schedule", "1f1b", "-p", "2", "-m", "4", "-d", "2"}), "--data requires --mesh");
  expect_refusal(show({"--mesh", "--format", "csv"}),
                 "--format csv works only for schedules; with --mesh use text, svg or json");
  expect_refusal(show({"--schedule", "1f1b", "-p", "2", "-m", "4", "--format", "text"}),
                 "--format text needs --mesh");
  for (const char* flag : {"-p", "-d", "-t", "-c", "-e", "--gpus-per-node"}) {
    for (const char* value : {"0", "-3", "two"})
      expect_refusal(show({"--mesh", flag, value}),
                     "\"" + std::string(value) + "\" must be a whole number from 1 to ");
  }
  for (const char* flag : {"-p", "-d", "-t", "-c"})
    expect_refusal(show({"--mesh", flag, "2147483647"}), "a mesh of more than 1048576 ranks is not drawn");
}

TEST(CheckCommand, NamesAnActionAlikeInItsTextAndItsJson) {
  const Scratch scratch;
  std::string program = show({"--schedule", "1f1b", "-p", "2", "-m", "2", "--program"}).out;
  const std::size_t second = program.find(" 1F1 ");
  ASSERT_NE(second, std::string::npos) << program;
  scratch.write("program.txt", program.replace(second, 5, " 1F0 "));
  const Ending ending =
      run_program({PENSTOCK_PROGRAM, "check", "--program", scratch / "program.txt", "--json"});
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_NE(ending.out.find("\"action\": \"1F0\", \"text\": "), std::string::npos) << ending.out;
}

TEST(CheckCommand, ShowsNoByteOfABinaryFileAsItIs) {
  const Scratch scratch;
  scratch.write("binary.csv", std::string("\x7F"
                                          "ELF\xE0\x61\0\xFF",
                                          8));
  const Ending ending = run_program({PENSTOCK_PROGRAM, "check", scratch / "binary.csv"});
  expect_refusal(ending, "\"\\x7fELF\\xe0a\\x00\\xff\" is not an action");
}

TEST(Program, NamesTheNearestCommand) {
  expect_refusal(run_program({PENSTOCK_PROGRAM, "trian", "run.toml"}),
                 "unknown command \"trian\"; did you mean train?");
  expect_refusal(run_program({PENSTOCK_PROGRAM}), "a command is missing; use one of train, ");
}

}  // namespace
}  // namespace penstock::testing
