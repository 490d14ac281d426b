// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/" + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> table_lines(const std::vector<std::string>& lines) {
  std::vector<std::string> rows;
  for (const std::string& line : lines) {
    if (line.starts_with("|")) rows.push_back(line);
  }
  return rows;
}

TEST(PapersPage, IsShortAndHasTheTablesThatItsBenchmarkPrinted) {
  const auto page = lines_of("docs/papers.md"), printed = lines_of("bench/results/papers.txt");
  EXPECT_LT(page.size(), 120u);
  EXPECT_GT(table_lines(printed).size(), 40u);
  EXPECT_EQ(table_lines(page), table_lines(printed));
}

}  // namespace
