// SPDX-License-Identifier: Apache-2.0
// Files, functions and folders of src/ stay small, and so does the README.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int kMostLines = 350, kMostLinesOfAFunction = 40, kReadmeLines = 120;
constexpr double kMostLongFunctions = 0.002;  // of all functions
constexpr std::size_t kMostPairs = 22;        // of header and source, in one folder

template <class Visit>
void for_each_source(Visit visit) {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(PENSTOCK_SOURCE_DIR) / "src")) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    visit(entry.path(), std::string{std::istreambuf_iterator<char>(file), {}});
  }
}

// The code without comments, literals and directives; its lines stay.
std::string bare(const std::string& code) {
  static const std::regex noise(R"re(//[^\n]*|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])+'|\n[ \t]*#[^\n]*)re");
  std::string kept;
  auto from = code.begin();
  for (std::sregex_iterator it(code.begin(), code.end(), noise), end; it != end; ++it) {
    kept.append(from, code.begin() + it->position());
    kept += it->str().front() == '\n' ? "\n" : "";
    from = code.begin() + it->position() + it->length();
  }
  return kept.append(from, code.end());
}

bool opens_function(const std::string& head) {
  static const std::regex scope(
      R"(\b(namespace|enum)\b|^\s*(template\s*<.*>\s*)?(class|struct|union)\b[^(]*$)");
  return head.find(')') != std::string::npos && !std::regex_search(head, scope);
}

// Lines of the body of every function that is in no other one, by counting braces.
std::vector<int> function_lines(const std::string& code) {
  std::vector<int> lines;
  std::string head;
  int line = 1, depth = 0, function_depth = 0, begin = 0;
  for (const char c : bare(code)) {
    line += c == '\n';
    if (c == '{') {
      ++depth;
      if (function_depth == 0 && opens_function(head)) function_depth = depth, begin = line;
    }
    if (c == '}' && depth-- == function_depth) {
      lines.push_back(line - begin + 1);
      function_depth = 0;
    }
    if (c == '{' || c == '}' || c == ';') {
      head.clear();
    } else if (function_depth == 0) {
      head += c;
    }
  }
  return lines;
}

TEST(Sizes, NoFileIsLong) {
  for_each_source([](const fs::path& path, const std::string& code) {
    EXPECT_LE(std::ranges::count(code, '\n'), kMostLines) << path;
  });
}

TEST(Sizes, TheReadmeIsShort) {
  std::ifstream file(fs::path(PENSTOCK_SOURCE_DIR) / "README.md");
  EXPECT_LT(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), kReadmeLines);
}

TEST(Sizes, HardlyAnyFunctionIsLong) {
  int all = 0, too_long = 0;
  std::string where;
  for_each_source([&](const fs::path& path, const std::string& code) {
    for (const int lines : function_lines(code)) {
      ++all;
      if (lines <= kMostLinesOfAFunction) continue;
      ++too_long;
      where += " " + path.filename().string() + " (" + std::to_string(lines) + ")";
    }
  });
  EXPECT_GT(all, 2000) << "the test found hardly any function; does it count braces right?";
  EXPECT_LE(too_long, kMostLongFunctions * all) << "functions of more than 40 lines:" << where;
}

TEST(Sizes, NoFolderIsAFlatList) {
  std::map<fs::path, std::set<std::string>> pairs;
  for_each_source(
      [&](const fs::path& path, const std::string&) { pairs[path.parent_path()].insert(path.stem()); });
  for (const auto& [folder, names] : pairs) EXPECT_LE(names.size(), kMostPairs) << folder;
}

}  // namespace
