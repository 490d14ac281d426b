// SPDX-License-Identifier: Apache-2.0
#include "schedule/text.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "failure.h"
#include "schedule/generators/generator.h"

namespace penstock::schedule {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_csv(text, "my.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing refused";
}

TEST(Text, TokensAreStageKindMicroBatchAndSlice) {
  EXPECT_EQ(to_token(forward(3, 2), false), "3F2");
  EXPECT_EQ(to_token(backward(0, 1, 7), true), "0B1.7");
  EXPECT_EQ(to_token(backward_input(12, 0), false), "12I0");
  EXPECT_EQ(to_token(backward_weight(1, 34), false), "1W34");
  EXPECT_EQ(to_token(Action{.key = {.stage = 2}, .kind = Kind::ReduceGradients}, true), "2REDUCE_GRAD");
  EXPECT_EQ(to_token(Action{}, true), "");
}

TEST(Text, TokensParseBack) {
  for (const Kind kind : {Kind::Forward, Kind::Backward, Kind::BackwardInput, Kind::BackwardWeight}) {
    for (const int number : {0, 1, 9, 10, 999, 32766}) {
      const Action action{number, 2 * number, static_cast<std::int16_t>(number), kind, false};
      EXPECT_EQ(parse_token(to_token(action, true)), action);
    }
  }
  EXPECT_EQ(parse_token("2REDUCE_GRAD"), (Action{.key = {.stage = 2}, .kind = Kind::ReduceGradients}));
  EXPECT_EQ(parse_token(""), Action{});
}

TEST(Text, RowsAreDevicesAndEmptyCellsAreIdle) {
  const Schedule schedule = parse_csv("0F0,,0B0\n,1F0,1B0,1REDUCE_GRAD\n", "my.csv");
  EXPECT_EQ(schedule.name, "my.csv");
  EXPECT_EQ(schedule.stages, 2);
  EXPECT_EQ(schedule.slices, std::vector<int>{1});
  EXPECT_EQ(schedule.devices[0], (std::vector<Action>{forward(0, 0), {}, backward(0, 0)}));
  EXPECT_EQ(schedule.devices[1][3], (Action{.key = {.stage = 1}, .kind = Kind::ReduceGradients}));
}

TEST(Text, AnOverlappedPairIsTwoActionsAndOneCell) {
  const std::string text = "0F0,(0F1;3B0)OVERLAP_F_B,0F2\n";
  const Schedule schedule = parse_csv(text, "my.csv");
  Action first = forward(0, 1);
  first.overlaps_next = true;
  EXPECT_EQ(schedule.devices[0], (std::vector<Action>{forward(0, 0), first, backward(3, 0), forward(0, 2)}));
  EXPECT_EQ(to_csv(schedule), text);
}

TEST(Text, SizesAreTheGreatestNumbersPlusOne) {
  const Schedule schedule = parse_csv("4F0.0,0F2.6,1B1\n", "my.csv");
  EXPECT_EQ(schedule.stages, 5);
  EXPECT_EQ(schedule.slices, (std::vector<int>{1, 1, 7}));
}

TEST(Text, LineEndsBlanksAndQuotesDoNotMatter) {
  const Schedule plain = parse_csv("0F0,,0B0\n1F0,1B0\n", "a");
  for (const char* text : {"0F0,,0B0\r\n1F0,1B0\r\n", "0F0,,0B0\n1F0,1B0", " 0F0 ,\t, 0B0\n1F0,1B0\n",
                           "\"0F0\",\"\",0B0\n1F0,\"1B0\"\n", "00F000,,0B0\n1F0,1B0\n"}) {
    EXPECT_EQ(parse_csv(text, "a"), plain) << text;
  }
}

TEST(Text, AByteOrderMarkDoesNotMatter) {
  const std::string mark = "\xEF\xBB\xBF", rows = "0F0,0B0\n";
  EXPECT_EQ(parse_csv(mark + rows, "x").devices, parse_csv(rows, "x").devices);
}

TEST(Text, AProgramIsNamedAsOne) {
  EXPECT_EQ(failure<InputError>([] { parse_csv("penstock program 1\nname x\n", "program.txt"); }),
            "program.txt: is a program, not a schedule; penstock check --program reads it");
}

TEST(Text, RowsWithoutCellsAndRowsWithOneIdleCellDiffer) {
  const Schedule schedule = parse_csv("0F0\n\n\"\"\n,\n", "a");
  ASSERT_EQ(schedule.device_count(), 4);
  for (int device = 1; device < 4; ++device) EXPECT_EQ(schedule.devices[device].size(), device - 1);
  EXPECT_EQ(to_csv(schedule), "0F0\n\n\"\"\n,\n");
}

TEST(Text, PrintingAndParsingAreInverseForEveryGenerator) {
  int printed = 0;
  for (const Generator& generator : generators()) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int m : {1, 2, 4, 8, 16}) {
        for (const int n : {1, 4}) {
          try {
            const Schedule schedule = generate(generator.name, request(p, m, n));
            EXPECT_EQ(parse_csv(to_csv(schedule), schedule.name), schedule);
            ++printed;
          } catch (const InputError&) {
          }
        }
      }
    }
  }
  EXPECT_GT(printed, 40);
}

// Any actions in any order, with pairs, idle cells and empty rows.
Schedule random_schedule(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  Schedule schedule{.name = "noise", .stages = 1, .slices = {1}};
  schedule.devices.resize(1 + below(4));
  const bool sliced = below(2);
  if (sliced) schedule.slices = {3};
  for (auto& row : schedule.devices) {
    for (int cells = below(8); cells > 0; --cells) {
      const auto kind = static_cast<Kind>(below(6));
      Action action{below(5), below(5), static_cast<std::int16_t>(sliced ? below(3) : 0), kind, false};
      if (kind == Kind::Idle) action = {};
      if (kind == Kind::ReduceGradients) action = {.key = {.stage = action.key.stage}, .kind = kind};
      const bool follows = !row.empty() && is_compute(row.back().kind) && is_compute(kind);
      if (follows && below(4) == 0 && (row.size() < 2 || !row[row.size() - 2].overlaps_next))
        row.back().overlaps_next = true;
      row.push_back(action);
    }
  }
  schedule.devices[0].push_back(forward(0, 0));
  return schedule;
}

TEST(Text, PrintingAndParsingAreInverseForNoise) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const Schedule read = parse_csv(to_csv(random_schedule(random)), "noise");
    EXPECT_EQ(parse_csv(to_csv(read), "noise"), read);
    Schedule sized = random_schedule(random);
    const Schedule back = parse_csv(to_csv(sized), "noise");
    EXPECT_EQ(back.devices, sized.devices);
  }
}

TEST(Text, UnreadableCellsAreNamedWithTheirPlace) {
  EXPECT_EQ(refusal("0F0,0B0\n0F1,,3X1\n"),
            "my.csv: row 2, column 3: \"3X1\" is not an action; expected "
            "<stage><F|B|I|W><micro-batch>[.<slice>], as in 3F2 or "
            "0B1.7");
  for (const char* cell : {"F",
                           "0",
                           "0F",
                           "F0",
                           "0f0",
                           "0F0.",
                           "0F0.1.2",
                           "0F0x",
                           "-1F0",
                           "0F-1",
                           "0F0.-1",
                           "0F 0",
                           "+0F0",
                           "0F0;",
                           "0SEND_F0",
                           "0UNSHARD",
                           "0REDUCE_GRAD1",
                           "REDUCE_GRAD",
                           "(0F0)OVERLAP_F_B",
                           "(0F0;0B1)",
                           "(0F0;0B1)OVERLAP",
                           "(0F0;0B1;0B2)OVERLAP_F_B",
                           "(0F0;)OVERLAP_F_B",
                           "(0F0;1REDUCE_GRAD)OVERLAP_F_B",
                           "(0F0;0B1",
                           "()OVERLAP_F_B",
                           "\"0F0",
                           "\xEF\xBB\xBF\xEF\xBB\xBF",
                           "0F0\v"}) {
    EXPECT_NE(refusal(cell).find("my.csv: row 1, column 1: \""), std::string::npos)
        << cell << ": " << refusal(cell);
    EXPECT_NE(refusal(cell).find("is not an action; expected"), std::string::npos)
        << cell << ": " << refusal(cell);
  }
}

TEST(Text, HugeNumbersAreRefusedByName) {
  EXPECT_EQ(refusal("0F0,2000000000F0"),
            "my.csv: row 1, column 2: \"2000000000F0\" names stage 2000000000; the greatest is 1048575");
  EXPECT_NE(refusal("0F1048576").find("micro-batch 1048576; the greatest is 1048575"), std::string::npos);
  EXPECT_NE(refusal("0F0.32767").find("slice 32767; the greatest is 32766"), std::string::npos);
  EXPECT_NE(refusal("99999999999999999999999999F0").find("names stage 99999999999999999999..."),
            std::string::npos);
  EXPECT_EQ(parse_csv("1048575F1048575.32766", "a").stages, 1 << 20);
}

TEST(Text, FilesWithoutActionsAreUnreadable) {
  for (const char* text : {"", "\n", "\r\n\r\n", ",,,\n,,\n", "  \n"}) {
    EXPECT_NE(refusal(text).find("my.csv: holds no action"), std::string::npos) << text;
  }
  EXPECT_EQ(refusal(std::string(100'000, '\n')), "my.csv: more than 65536 rows; a row is a device");
}

TEST(Text, BinaryNoiseIsRefusedAtItsFirstCell) {
  std::mt19937 random(2);
  std::string noise(10'000'000, '\0');
  EXPECT_EQ(refusal(noise).substr(0, 42), "my.csv: row 1, column 1: \"\\x00\\x00\\x00\\x00");
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_LT(refusal(noise).size(), 600u);
  EXPECT_NE(refusal(std::string("0F0\0,0B0", 8)).find("\"0F0\\x00\" is not an action"), std::string::npos);
}

TEST(Text, JsonHasTheCellsOfTheCsv) {
  Schedule schedule = parse_csv("0F0,,(0F1;0B0)OVERLAP_F_B,0B1\n1F0\n", "a \"file\"");
  EXPECT_EQ(to_json(schedule),
            "{\"schedule\":\"a \\\"file\\\"\",\"stages\":2,\"slices\":[1,1],\"devices\":[\n"
            "[\"0F0\",\"\",\"(0F1;0B0)OVERLAP_F_B\",\"0B1\"],\n"
            "[\"1F0\"]]}");
}

}  // namespace
}  // namespace penstock::schedule
