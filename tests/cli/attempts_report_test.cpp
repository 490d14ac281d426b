// SPDX-License-Identifier: Apache-2.0
// The report's tables of a supervised run.
#include <gtest/gtest.h>

#include "cli/report/run_record.h"
#include "cli/supervise/attempts.h"

namespace penstock::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<report::Table> tables_of(const std::string& text) {
  report::Run run;
  EXPECT_TRUE(add_attempts(text, run)) << text;
  return run.tables;
}

TEST(AttemptsInTheReport, HaveARowForEachRecovery) {
  const std::string reason = "rank 1: no room (d0 p1, host b)";
  const std::vector<Attempt> attempts{
      {.began = 100,
       .seconds = 20,
       .exit_code = 3,
       .reason = reason,
       .steps = {{.step = 1, .seconds = 4, .time = 112}}},
      {.began = 122,
       .seconds = 10,
       .pause = 2,
       .resumed = 1,
       .load = 0.5,
       .steps = {{.step = 2, .seconds = 3, .time = 130}}},
  };
  const auto tables = tables_of(to_json(attempts));
  ASSERT_EQ(tables.size(), 3);
  EXPECT_EQ(tables[0].rows, (Rows{{"0", "1", "20.0 s", reason}, {"1", "2", "10.0 s", "done"}}));
  EXPECT_EQ(tables[1].title, "Recoveries");
  EXPECT_EQ(tables[1].rows, (Rows{{"8.00 s", "6.50 s", "500 ms", "3.00 s"}}));
}

// Of a run that never failed, and files of older versions.
TEST(AttemptsInTheReport, HaveNoTableOfNoRecoveries) {
  EXPECT_EQ(tables_of(to_json({{.seconds = 20}})).size(), 2);
  EXPECT_EQ(tables_of(R"({"attempts": [{}]})").size(), 2);
  EXPECT_EQ(tables_of(R"({"attempts": [{}], "recoveries": 3})").size(), 2);
}

}  // namespace
}  // namespace penstock::cli
