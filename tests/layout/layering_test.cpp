// SPDX-License-Identifier: Apache-2.0
// Reads every #include of src/ and fails on an edge that the table of docs/architecture.md does not have.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;
const fs::path kSource = fs::path(PENSTOCK_SOURCE_DIR) / "src";

const std::map<std::string, std::set<std::string>> kMayInclude{
    {"base", {}},
    {"model", {"base"}},
    {"files", {"base", "model"}},
    {"schedule", {"base"}},
    {"sim", {"base", "model", "schedule"}},
    {"plan", {"base", "model", "schedule", "sim"}},
    {"comm", {"base"}},
    {"nn", {"base", "model", "comm"}},
    {"train", {"base", "model", "files", "schedule", "comm", "nn"}},
    {"profile", {"base", "model", "comm", "nn"}},
    {"report", {"base", "model", "schedule"}},
    {"cli",
     {"base", "model", "files", "schedule", "sim", "plan", "comm", "nn", "train", "profile", "report"}},
};

const std::set<std::string> kPure{"base", "model", "schedule", "sim", "plan", "report"};

template <class Visit>
void for_each_include(Visit visit) {
  const std::regex include(R"(^\s*#\s*include\s*([<"])([^">]+)[">])");
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    const std::string folder = fs::relative(entry.path(), kSource).begin()->string();
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, match, include))
        visit(entry.path(), folder, match[2].str(), match[1] == "<");
    }
  }
}

TEST(Layering, EveryFolderIncludesOnlyWhatTheTableAllows) {
  int seen = 0;
  for_each_include([&](const fs::path& file, const std::string& folder, const std::string& target,
                       bool system) {
    if (system) return;
    ++seen;
    const std::string other = target.substr(0, target.find('/'));
    ASSERT_TRUE(kMayInclude.contains(folder)) << "src/" << folder << " is not in the table";
    EXPECT_TRUE(other == folder || kMayInclude.at(folder).contains(other)) << file << " includes " << target;
  });
  EXPECT_GT(seen, 20) << "the test found hardly any include; does it look in the right place?";
}

TEST(Layering, ThePureHalfUsesTheStandardLibraryAlone) {
  for_each_include(
      [&](const fs::path& file, const std::string& folder, const std::string& target, bool system) {
        if (!system || !kPure.contains(folder)) return;
        EXPECT_EQ(target.find_first_of("./"), std::string::npos) << file << " includes <" << target << ">";
      });
}

TEST(Layering, TransportsAndTensorsStayInTheirFolders) {
  for_each_include([&](const fs::path& file, const std::string& folder, const std::string& target, bool) {
    if (target == "mpi.h") {
      EXPECT_EQ(file.filename(), "mpi.cpp");
    }
    const bool tensors =
        target.starts_with("ATen/") || target.starts_with("c10/") || target.starts_with("torch/");
    const std::set<std::string> device_half{"nn", "train", "profile", "cli"};
    if (tensors) {
      EXPECT_TRUE(device_half.contains(folder)) << file << " includes " << target;
    }
    if (folder == "nn" && target.starts_with("comm/")) {
      EXPECT_EQ(target, "comm/communicator.h") << file;
    }
  });
}

}  // namespace
