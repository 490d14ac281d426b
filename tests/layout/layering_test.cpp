// SPDX-License-Identifier: Apache-2.0
// Reads every #include of src/ and fails on an edge that the table of docs/architecture.md does not have, or
// on a cycle between the rooms of one folder: its sub-folders, and the files directly in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace {

namespace fs = std::filesystem;
const fs::path kSource = fs::path(PENSTOCK_SOURCE_DIR) / "src";

using Edges = std::map<std::string, std::set<std::string>>;

const Edges kMayInclude{
    {"base", {}},
    {"mesh", {"base"}},
    {"model", {"base", "mesh"}},
    {"files", {"base", "model"}},
    {"schedule", {"base", "mesh"}},
    {"sim", {"base", "model", "mesh", "schedule"}},
    {"run", {"base", "model", "mesh", "files", "schedule", "sim"}},
    {"plan", {"base", "model", "mesh", "schedule", "sim", "run"}},
    {"comm", {"base", "mesh", "backend"}},
    {"backend", {"base", "model"}},
    {"nn", {"base", "model", "mesh", "comm", "backend"}},
    {"train", {"base", "model", "mesh", "files", "schedule", "run", "comm", "backend", "nn"}},
    {"profile", {"base", "model", "comm", "backend", "nn"}},
    {"report", {"base", "model", "mesh", "schedule"}},
    {"python", {"base", "model", "mesh", "schedule", "sim", "run", "plan", "report"}},
    {"cli",
     {"base", "model", "mesh", "files", "schedule", "sim", "run", "plan", "comm", "backend", "nn", "train",
      "profile", "report"}},
};

const std::set<std::string> kPure{"base", "mesh", "model", "schedule", "sim", "run", "plan", "report"};

template <class Visit>
void for_each_include(Visit visit) {
  const std::regex include(R"(^\s*#\s*include\s*([<"])([^">]+)[">])");
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    if (!std::set<std::string>{".h", ".cpp", ".cu"}.contains(entry.path().extension().string())) continue;
    const std::string folder = fs::relative(entry.path(), kSource).begin()->string();
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, match, include))
        visit(entry.path(), folder, match[2].str(), match[1] == "<");
    }
  }
}

std::string names_of(const Edges& rooms) {
  std::string names;
  for (const auto& [room, others] : rooms) names += " " + room;
  return names;
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

TEST(Layering, TheBuildLinksWhatTheTableAllows) {
  std::ifstream file(fs::path(PENSTOCK_SOURCE_DIR) / "CMakeLists.txt");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex call(R"(\n *penstock_folder\((\w+)(?: NEEDS ([a-z\s]+))?)");
  Edges linked;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    std::istringstream needs((*it)[2].str());
    linked[(*it)[1]] = {std::istream_iterator<std::string>(needs), {}};
  }
  EXPECT_EQ(linked, kMayInclude);
}

TEST(Layering, NoFolderHasACycleAmongItsRooms) {
  Edges rooms;
  for_each_include(
      [&](const fs::path& file, const std::string& folder, const std::string& target, bool system) {
        const std::string room = fs::relative(file.parent_path(), kSource).string();
        const std::string other = fs::path(target).parent_path().string();
        if (system || other == room || *fs::path(target).begin() != folder) return;
        rooms[room].insert(other);
      });
  while (!rooms.empty()) {  // rooms that include no other one leave, one after the other
    const auto lowest = std::ranges::find_if(rooms, [&](const auto& entry) {
      return std::ranges::none_of(entry.second, [&](const auto& other) { return rooms.contains(other); });
    });
    ASSERT_NE(lowest, rooms.end()) << "a cycle among " << names_of(rooms);
    rooms.erase(lowest);
  }
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
    const std::set<std::string> device_half{"backend", "nn", "train", "profile", "cli"};
    if (tensors) {
      EXPECT_TRUE(device_half.contains(folder)) << file << " includes " << target;
    }
    if (folder == "nn" && target.starts_with("comm/")) {
      EXPECT_EQ(target, "comm/communicator.h") << file;
    }
  });
}

}  // namespace
