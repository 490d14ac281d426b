// SPDX-License-Identifier: Apache-2.0
#include "report/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "failure.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::check;
using schedule::parse_csv;
using schedule::Schedule;

const char* const kSchedule = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

std::string marked(const char* csv, const GridOptions& options = {}) {
  const Schedule schedule = parse_csv(csv, "test");
  return marked_grid(schedule, check(schedule), options);
}

TEST(Grid, ShowsDevicesAgainstTime) {
  EXPECT_EQ(grid(parse_csv(kSchedule, "test")),
            "time     0                   5\n"
            "device 0 0F0 0F1 .   .   0B0==== .   0B1====\n"
            "device 1 .   1F0 1B0==== 1F1 1B1==== .   .\n");
}

TEST(Grid, ColumnsAreWideEnoughForEveryToken) {
  const Schedule schedule = parse_csv("0F0.0,0F0.1,0F10.0,0B10.0,0B0.1,0B0.0\n", "test");
  EXPECT_NE(grid(schedule).find("0F0.0  0F0.1  0F10.0 0B10.0======="), std::string::npos) << grid(schedule);
}

TEST(Grid, LongGridsGoOnInFurtherBlocks) {
  EXPECT_EQ(grid(parse_csv(kSchedule, "test"), {.most_columns = 30}),
            "time     0\n"
            "device 0 0F0 0F1 .   .   0B0=\n"
            "device 1 .   1F0 1B0==== 1F1\n"
            "\n"
            "time     5\n"
            "device 0 === .   0B1====\n"
            "device 1 1B1==== .   .\n");
}

TEST(Grid, NoLineIsLongerThanAsked) {
  const Schedule schedule = generate("dualpipe-v", schedule::request(4, 9));
  for (const int columns : {20, 33, 80, 200}) {
    const std::string text = grid(schedule, {.most_columns = columns});
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
      EXPECT_LE(text.find('\n', begin) - begin, static_cast<std::size_t>(columns));
    }
  }
}

TEST(Grid, EveryActionIsShownOnceForEveryGenerator) {
  for (const schedule::Generator& generator : schedule::generators()) {
    const Schedule schedule = generate(generator.name, schedule::request(2, 4));
    std::string text = grid(schedule, {.most_columns = 70});
    for (const auto& row : schedule.devices) {
      for (const auto& action : row) {
        const std::string token = to_token(action, is_sliced(schedule));
        const std::size_t at = text.find(token);
        ASSERT_NE(at, std::string::npos) << generator.name << " " << token;
        text.replace(at, token.size(), token.size(), '#');
      }
    }
    EXPECT_EQ(text.find_first_of("FBIW"), std::string::npos) << text;
  }
}

TEST(Grid, ColoursChangeNothingButTheColours) {
  const Schedule schedule = generate("zb-h1", schedule::request(3, 4));
  const std::string coloured = grid(schedule, {.colour = true});
  EXPECT_NE(coloured.find("\x1b[48;2;"), std::string::npos);
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), ""), grid(schedule));
}

TEST(Grid, FindingsMarkTheirCells) {
  EXPECT_EQ(marked("0F0,0F1,0B0,0B1\n1F0,1B0,1F2,1B1\n"),
            "position 0\n"
            "device 0 0F0   0F1   0B0   0B1\n"
            "device 1 1F0   1B0   >1F2< 1B1\n");
}

TEST(Grid, OnlyBlocksWithAMarkedCellAreShown) {
  std::string csv;
  for (int j = 0; j < 40; ++j) csv += "0F" + std::to_string(j) + ",0B" + std::to_string(j) + ",";
  const std::string text = marked((csv + "0B7\n").c_str(), {.most_columns = 60});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find(">0B7<"), std::string::npos) << text;
}

// All blocks of so many devices would take 60 GB.
TEST(Grid, BlocksThatAreNotShownTakeNoMemory) {
  const std::string csv = "0F0,0B0,0B0" + std::string(100'000, ',') + std::string(50'000, '\n');
  const std::string text = marked(csv.c_str(), {.most_columns = 160});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50'001);
  EXPECT_LT(text.size(), 50'001u * 161);
  EXPECT_NE(text.find(">0B0<"), std::string::npos);
}

// Idle cells up to the last action, on all devices.
TEST(Grid, GridsOfManyGigabytesAreRefused) {
  const std::string csv = "0B0" + std::string(100'000, ',') + "0F0" + std::string(50'000, '\n');
  for (const int columns : {0, 160}) {
    const std::string text =
        failure<InputError>([&] { grid(parse_csv(csv, "my.csv"), {.most_columns = columns}); });
    EXPECT_TRUE(text.starts_with("my.csv: a grid of 50000 devices would take ")) << text;
  }
}

TEST(Grid, FindingsWithoutACellShowTheFirstBlock) {
  std::string csv;
  for (int j = 0; j < 40; ++j) csv += "0F" + std::to_string(j) + ",0B" + std::to_string(j) + ",";
  const std::string text = marked((csv + "0F40\n").c_str(), {.most_columns = 60});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('>'), std::string::npos);
}

TEST(Grid, DeadlockedSchedulesAreShownByPosition) {
  EXPECT_EQ(grid(parse_csv("0B0,,0F0\n", "test")),
            "position 0\n"
            "device 0 0B0 .   0F0\n");
}

}  // namespace
}  // namespace penstock::report
