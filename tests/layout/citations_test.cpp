// SPDX-License-Identifier: Apache-2.0
// A comment that cites a document, as in docs/mesh.md, "Equal bits", names the beginning of a heading there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = PENSTOCK_SOURCE_DIR;

std::vector<std::string> headings_of(const fs::path& document) {
  std::vector<std::string> headings;
  std::ifstream file(document);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) headings.push_back(line.substr(line.find_first_not_of("# ")));
  }
  return headings;
}

// With the line ends of comments as blanks.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex("\n\\s*//\\s*"), " ");
}

TEST(Citations, NameADocumentAndOneOfItsHeadings) {
  const std::regex citation(R"re((docs/\w+\.md), "([^"]+)"(?: and "([^"]+)")?)re");
  int found = 0;
  for (const char* top : {"src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (!std::set<std::string>{".h", ".cpp", ".cu"}.contains(entry.path().extension().string())) continue;
      if (entry.path().filename() == "citations_test.cpp") continue;
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), citation), end; match != end; ++match) {
        const std::vector<std::string> headings = headings_of(kRoot / (*match)[1].str());
        EXPECT_FALSE(headings.empty()) << entry.path() << ": there is no " << (*match)[1];
        for (const std::size_t part : {2, 3}) {
          const std::string wanted = (*match)[part];
          ++found;
          EXPECT_TRUE(std::ranges::any_of(
              headings, [&](const std::string& heading) { return heading.starts_with(wanted); }))
              << entry.path() << ": " << (*match)[1] << " has no heading \"" << wanted << "\"";
        }
      }
    }
  }
  EXPECT_GT(found, 50);
}

}  // namespace
