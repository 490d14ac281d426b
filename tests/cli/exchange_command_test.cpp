// SPDX-License-Identifier: Apache-2.0
// Context exchange as a shell sees it: drawn, judged, simulated, trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

const Arguments kShow{"show", "--schedule", "slimpipe", "-p", "4", "-m", "2", "-n", "8"};

TEST(ExchangeCommand, ShowMarksWhoHelpsAndWhoIsHelped) {
  const Ending ending = program(with(kShow, {"--exchange", "levelled"}));
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("exchange levelled: "), std::string::npos);
  EXPECT_NE(ending.out.find("0F0.7- "), std::string::npos) << ending.out;
  EXPECT_NE(ending.out.find("+ "), std::string::npos) << ending.out;
  EXPECT_EQ(program(kShow).out.find('+'), std::string::npos);
  const Ending picture = program(with(kShow, {"--exchange", "paired", "--format", "svg"}));
  EXPECT_NE(picture.out.find("attends for "), std::string::npos);
  const Ending csv = program(with(kShow, {"--exchange", "paired", "--format", "csv"}));
  EXPECT_EQ(csv.exit_code, 2);
  EXPECT_EQ(program({"show", "--schedule", "1f1b", "-p", "4", "-m", "4", "--exchange", "paired"}).exit_code,
            2);
}

// What exchange is planned for has no pairs.
TEST(ExchangeCommand, ShowMarksActionsOfOverlappedPairsToo) {
  const Scratch scratch;
  const auto signs_in = [&](const std::string& csv) {
    scratch.write("my.csv", csv);
    std::ptrdiff_t signs = 0;
    for (const std::string& line :
         lines_of(program({"show", scratch / "my.csv", "--exchange", "levelled"}).out)) {
      if (line.starts_with("device ")) signs += std::ranges::count(line, '+') + std::ranges::count(line, '-');
    }
    return signs;
  };
  const std::string apart = program(with(kShow, {"--format", "csv"})).out;
  const std::string paired =
      std::regex_replace(apart, std::regex("(0F[0-9.]+),(0B[0-9.]+)"), "($1;$2)OVERLAP_F_B");
  ASSERT_NE(paired, apart);
  EXPECT_GT(signs_in(apart), 0);
  EXPECT_EQ(signs_in(paired), signs_in(apart));
}

TEST(ExchangeCommand, TakesTheGreatestLimit) {
  const auto limited = [](const std::string& limit) {
    return program(with(kShow, {"--exchange", "levelled", "--exchange-limit", limit})).out;
  };
  EXPECT_EQ(limited("2147483647"), limited("8"));
  EXPECT_NE(limited("8"), limited("1"));
}

TEST(ExchangeCommand, CheckJudgesTheHelpOfAProgram) {
  const Scratch scratch;
  const std::string text = program(with(kShow, {"--exchange", "levelled", "--program"})).out;
  scratch.write("good.txt", text);
  EXPECT_EQ(program({"check", "--program", scratch / "good.txt"}).exit_code, 0);
  std::string bad = text;
  const std::size_t at = bad.find("halves 0+");
  ASSERT_NE(at, std::string::npos);
  bad.replace(at, 9, "halves 99+");
  scratch.write("bad.txt", bad);
  const Ending ending = program({"check", "--program", scratch / "bad.txt"});
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_NE(ending.out.find("exchange: exchange for "), std::string::npos) << ending.out;
}

TEST(ExchangeCommand, SimulateGivesThePublishedBubbles) {
  for (const auto& [exchange, bubble] : {std::pair{"off", 0.153}, {"paired", 0.123}}) {
    const Ending ending = program({"simulate", "--schedule", "slimpipe", "-p", "8", "-m", "4", "-n", "16",
                                   "--attention-share", "0.5", "--exchange", exchange, "--json"});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_NEAR(Json::parse(ending.out)["bubble_fraction"].get<double>(), bubble, 0.0005);
  }
}

TEST(ExchangeCommand, ARunWithItCanBeSimulatedFromItsOwnTimes) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending run = program({"train", scratch / "run.toml", "--ranks", "2", "--schedule.slices", "8",
                              "--schedule.exchange", "levelled", "--output.dir", scratch / "run"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("exchange  levelled: "), std::string::npos) << run.out;
  EXPECT_NE(scratch.read("run/program.txt").find("\nexchange "), std::string::npos);
  const Json step = Json::parse(scratch.read("run/timeline.json"))["steps"].back();
  ASSERT_EQ(step["exchange"].size(), 2u);
  EXPECT_FALSE(step["exchange"][0].empty());
  EXPECT_NE(scratch.read("run/trace.json").find("attends for device "), std::string::npos);
  for (const Arguments& more : {Arguments{}, {"--processor-time"}}) {
    const Ending simulated = program(with({"simulate", scratch / "run", "--json"}, more));
    ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
    EXPECT_GT(Json::parse(simulated.out)["makespan_s"].get<double>(), 0);
  }
}

// In one slot stand slices of different lengths then.
TEST(ExchangeCommand, IsRefusedForMicroBatchesOfDifferentNumbersOfSlices) {
  const Scratch scratch;
  const Arguments uneven{"--schedule", "slimpipe", "-p", "2", "-n", "8,2,8"};
  scratch.write("uneven.csv", program(with({"show", "--format", "csv"}, uneven)).out);
  scratch.write("run.toml", small_run_file(scratch));
  const Arguments paired{"simulate", "--exchange", "paired", "--attention-share", "0.5"};
  for (const Arguments& command : {with({"show", "--exchange", "levelled"}, uneven), with(paired, uneven),
                                   with(paired, {scratch / "uneven.csv"})}) {
    const Ending ending = program(command);
    EXPECT_EQ(ending.exit_code, 2) << ending.out;
    ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
    EXPECT_NE(ending.complaints()[0].find("the same number of slices in every micro-batch; "),
              std::string::npos);
  }
  const auto train = [&](const std::string& exchange) {
    return program({"train", scratch / "uneven.toml", "--ranks", "2", "--schedule.file",
                    scratch / "uneven.csv", "--train.batch", "3", "--schedule.exchange", exchange});
  };
  std::string file = scratch.read("run.toml");
  for (const std::string line : {"name = \"slimpipe\"\n", "slices = 4\n"})
    file.erase(file.find(line), line.size());
  scratch.write("uneven.toml", file);
  const Ending refused = train("paired");
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(refused.complaints().size(), 1u) << refused.err;
  EXPECT_TRUE(refused.complaints()[0].ends_with(
      "uneven.csv\" has from 2 to 8: use a file with one n, or schedule.exchange = \"off\""))
      << refused.err;
  const Ending chosen = train("auto");
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_EQ(chosen.err.find("measuring"), std::string::npos) << chosen.err;
  EXPECT_NE(chosen.out.find("exchange  off: "), std::string::npos) << chosen.out;
}

TEST(ExchangeCommand, AutoIsPrintedWithItsReason) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending simulated =
      program({"simulate", scratch / "run.toml", "--schedule.exchange", "auto", "--hardware", "h200"});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_NE(simulated.out.find("\nexchange "), std::string::npos) << simulated.out;
}

TEST(ExchangeCommand, IsRefusedWithUnequalLayersBeforeTheRunStarts) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  for (const bool mpirun : {false, true}) {
    const Arguments arguments{"train",        scratch / "run.toml", "--schedule.exchange",
                              "paired",       "--model.layers",     "5",
                              "--output.dir", scratch / "run"};
    const Ending ending = run_program(mpirun ? with_mpirun(2, arguments) : with_threads(2, arguments));
    EXPECT_EQ(ending.exit_code, 2) << ending.err;
    ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
    EXPECT_NE(ending.complaints()[0].find("use model.layers = 4 or 6, or schedule.exchange = \"off\""),
              std::string::npos)
        << ending.err;
  }
}

}  // namespace
}  // namespace penstock::testing
