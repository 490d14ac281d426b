// SPDX-License-Identifier: Apache-2.0
// Files that are compiled as one (cmake/BuildSpeed.cmake) share their unnamed namespaces: a name there
// belongs to one of them, for another's overload would be taken without a word.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

// The files that a file may be compiled with, by a name for them all; empty when it is compiled alone.
std::string company_of(const fs::path& file) {
  const std::string folder = file.parent_path().generic_string();
  static const std::regex alone(
      "src/(backend|comm|python)\\b.*|src/cli(/profile|/start)?|src/nn/kernels/cpu.*|"
      "src/train(/flight|/record)?|tests/(fuzz|GPU).*");
  static const std::regex apart("src/nn/kernels/cuda.*|src/(cli|train)/.*");
  if (std::regex_match(folder, alone) || file.stem().string().ends_with("_mpi")) return "";
  if (std::regex_match(folder, apart)) return folder;
  return folder.substr(0, folder.find('/', folder.find('/') + 1));
}

// What a line at the left margin of an unnamed namespace defines; empty when it is no definition.
std::string defined_by(const std::string& line) {
  static const std::regex test("(TEST|INSTANTIATE|using [^=]*;).*");
  static const std::regex type("(struct|class|enum|enum class) (\\w+).*|using (\\w+) =.*");
  static const std::regex object("[^=(]*?\\b(k[A-Z]\\w*)[\\[{=;, ].*|[^ ][^=(]*[ *&>](\\w+)\\(.*");
  std::smatch match;
  if (std::regex_match(line, test)) return "";
  if (std::regex_match(line, match, type)) return match[2].str() + match[3].str();
  if (std::regex_match(line, match, object)) return match[1].str() + match[2].str();
  return "";
}

TEST(UnnamedNames, AreOneThingAmongFilesThatAreCompiledAsOne) {
  std::map<std::string, std::map<std::string, std::map<std::string, std::string>>>
      found;  // [company][name][file]
  const fs::path source = PENSTOCK_SOURCE_DIR;
  for (const char* top : {"src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source / top)) {
      const fs::path path = fs::relative(entry.path(), source);
      const std::string company = path.extension() == ".cpp" ? company_of(path) : "";
      if (company.empty()) continue;
      std::ifstream file(entry.path());
      bool inside = false;
      for (std::string line; std::getline(file, line);) {
        if (line == "namespace {") inside = true;
        if (line == "}  // namespace") inside = false;
        if (!inside || line.empty() || std::string(" }/#").find(line[0]) != std::string::npos) continue;
        if (const std::string name = defined_by(line); !name.empty())
          found[company][name].emplace(path.generic_string(), line);
      }
    }
  }
  EXPECT_GT(found["src/schedule"].size(), 100u);
  for (const auto& [company, names] : found) {
    for (const auto& [name, files] : names) {
      std::set<std::string> lines;  // the same alias in two files is one thing
      std::string all;
      for (const auto& [file, line] : files) lines.insert(line), all += "\n  " + file + ": " + line;
      const bool one = files.size() == 1 || (lines.size() == 1 && lines.begin()->starts_with("using "));
      EXPECT_TRUE(one) << name << " is defined in several files:" << all;
    }
  }
}

}  // namespace
