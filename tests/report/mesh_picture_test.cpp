// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/mesh_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "report/count.h"
#include "report/json_reader.h"
#include "report/mesh/mesh_grid.h"
#include "report/mesh/mesh_svg.h"

namespace penstock::report {
namespace {

using mesh::Mesh;

std::vector<Mesh> small_meshes() {
  std::vector<Mesh> meshes;
  for (const int t : {1, 2, 3}) {
    for (const int c : {1, 2}) {
      for (const int d : {1, 2, 3}) {
        for (const int p : {1, 2, 5}) {
          for (const int e : {1, t * c * d})
            meshes.push_back({.tensor = t, .context = c, .expert = e, .data = d, .pipeline = p});
        }
      }
    }
  }
  return meshes;
}

const Mesh kLarge{.tensor = 8, .context = 4, .expert = 16, .data = 256, .pipeline = 64};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_of(const std::string& text, const std::string& begin) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(begin + " ")) return line.substr(begin.size());
  }
  ADD_FAILURE() << "no line of " << begin << " in\n" << text;
  return {};
}

std::size_t characters(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

// The whole numbers among the words of a line.
std::vector<std::int64_t> numbers_in(const std::string& line) {
  std::vector<std::int64_t> numbers;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    if (const auto number = parse_integer(word)) numbers.push_back(*number);
  }
  return numbers;
}

TEST(MeshText, HasEveryRankOfASmallMeshInTheRowOfItsPipelineRank) {
  for (const Mesh& mesh : small_meshes()) {
    const std::string text = mesh_text({.mesh = mesh});
    for (int p = 0; p < mesh.pipeline; ++p) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t i = 0; i < mesh.ranks_per_stage(); ++i)
        wanted.push_back(p * mesh.ranks_per_stage() + i);
      EXPECT_EQ(numbers_in(line_of(text, "pipeline " + std::to_string(p))), wanted) << text;
    }
  }
}

// The labels of the innermost axis end where the ranks below them end.
TEST(MeshText, PutsEachRankUnderItsCoordinate) {
  for (const Mesh& mesh : small_meshes()) {
    if (mesh.tensor == 1) continue;
    const auto lines = lines_of(mesh_text({.mesh = mesh}));
    const auto row =
        std::ranges::find_if(lines, [](const auto& line) { return line.starts_with("pipeline 0"); });
    const std::string &labels = *(row - 1), &ranks = *row;
    for (std::int64_t rank = 0; rank < mesh.ranks_per_stage(); ++rank) {
      const std::size_t end = ranks.find(' ' + std::to_string(rank), 10) + 1 + std::to_string(rank).size();
      const std::string label = "t" + std::to_string(mesh.coordinates_of(rank).tensor);
      EXPECT_EQ(labels.substr(end - label.size(), label.size()), label) << labels << "\n" << ranks;
    }
  }
}

TEST(MeshText, HasABarWhereTheNextRankIsOnAnotherNode) {
  for (const Mesh& mesh : small_meshes()) {
    for (const int size : {1, 2, 3, 4, 8}) {
      const std::string text = mesh_text({.mesh = mesh, .ranks_per_node = size});
      for (int p = 0; p < mesh.pipeline; ++p) {
        std::size_t changes = 0;
        for (std::int64_t i = 1; i < mesh.ranks_per_stage(); ++i)
          changes += (p * mesh.ranks_per_stage() + i) % size == 0 ? 1 : 0;
        EXPECT_EQ(count(line_of(text, "pipeline " + std::to_string(p)), "┃"), changes) << text;
      }
    }
  }
}

TEST(MeshText, StaysReadableWhenTheMeshIsLarge) {
  const std::string text = mesh_text({.mesh = kLarge, .ranks_per_node = 8});
  for (const std::string& line : lines_of(text)) EXPECT_LE(characters(line), 165u) << line;
  EXPECT_LE(lines_of(text).size(), 40u);
  EXPECT_TRUE(text.starts_with(
      "524,288 ranks: pipeline 64, data 256, context 4, tensor 8, expert 16; 65,536 nodes of 8\n"))
      << text;
  EXPECT_EQ(count(text, "\n... 48 more\n"), 1u) << text;
}

TEST(MeshText, ListsTheFirstGroupsOfEachKind) {
  const std::string whole = mesh_text(
      {.mesh = {.tensor = 2, .context = 2, .expert = 4, .data = 2, .pipeline = 2}, .ranks_per_node = 8});
  const std::string text = whole.substr(whole.find("\ngroup "));
  const auto begins = [&](const std::string& kind, const std::string& cells) {
    std::istringstream words(line_of(text, kind));
    std::string line, word;
    while (words >> word) line += " " + word;
    EXPECT_TRUE(line.starts_with(cells)) << line;
  };
  begins("tensor", " 2 8 1 0 1 | 2 3 | 4 5 |");
  begins("context", " 2 8 1 0 2 | 1 3 | 4 6 |");
  begins("replica", " 4 4 1 0 2 4 6 | 1 3 5 7 |");
  begins("expert", " 4 4 1 0-3 | 4-7 |");
  begins("expert-replica", " 2 8 1 0 4 | 1 5 |");
  begins("pipeline", " 2 8 2 0 8 | 1 9 |");
  begins("vocabulary", " 4 4 2 0 1 8 9 | 2 3 10 11 |");
  begins("world", " 16 1 2 0-15 the step");
}

TEST(MeshGrid, ShowsOrCountsEveryIndex) {
  for (int size = 1; size < 40; ++size) {
    for (int most = 2; most < 12; ++most) {
      int next = 0, shown = 0;
      for (const MeshIndex& entry : shown_indices(size, most)) {
        EXPECT_EQ(entry.index, next);
        next += entry.left_out > 0 ? entry.left_out : 1;
        shown += entry.left_out > 0 ? 0 : 1;
      }
      EXPECT_EQ(next, size);
      EXPECT_EQ(shown, size <= most + 1 ? size : most);
    }
  }
}

TEST(MeshGrid, ColumnsCoverTheRanksOfAStageInOrder) {
  std::vector<Mesh> meshes = small_meshes();
  meshes.push_back(kLarge);
  for (const Mesh& mesh : meshes) {
    for (const int most : {4, 8, 24}) {
      const MeshGrid grid = mesh_grid(mesh, {.columns = most});
      std::int64_t next = 0;
      for (std::size_t i = 0; i < grid.columns.size(); ++i) {
        const MeshColumn& column = grid.columns[i];
        EXPECT_EQ(column.first, next);
        next = column.first + 1;
        if (column.left_out()) next = i + 1 < grid.columns.size() ? grid.columns[i + 1].first : -1;
      }
      EXPECT_EQ(next, mesh.ranks_per_stage());
    }
  }
}

TEST(MeshFormula, IsTheOrderOfTheRanks) {
  EXPECT_EQ(mesh_formula({.tensor = 4, .context = 2, .data = 3, .pipeline = 5}),
            "rank = ((pipeline · 3 + data) · 2 + context) · 4 + tensor");
  EXPECT_EQ(mesh_formula({.data = 2, .pipeline = 2}), "rank = pipeline · 2 + data");
  EXPECT_EQ(mesh_formula({.pipeline = 2}), "rank = pipeline");
}

TEST(MeshJson, HasAllRanksAndAllGroups) {
  for (const Mesh& mesh : small_meshes()) {
    const Json json = JsonReader::read(mesh_json({.mesh = mesh, .ranks_per_node = 2}));
    ASSERT_EQ(std::ssize(json["ranks"].list), mesh.world());
    for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
      const Json& entry = json["ranks"][static_cast<std::size_t>(rank)];
      EXPECT_EQ(entry["rank"].number, rank);
      EXPECT_EQ(entry["node"].number, rank / 2);
      const auto at = [&](const char* axis) { return static_cast<int>(entry[axis].number); };
      EXPECT_EQ(mesh.rank_of({at("tensor"), at("context"), at("data"), at("pipeline")}), rank);
    }
    for (const mesh::Group kind : mesh::kGroups) {
      std::int64_t ranks = 0;
      for (const Json& group : json["groups"][std::string(name_of(kind))].list) {
        std::vector<std::int64_t> found;
        for (const Json& rank : group.list) found.push_back(static_cast<std::int64_t>(rank.number));
        EXPECT_EQ(found, members(mesh, kind, found.front())) << name_of(kind);
        ranks += std::ssize(found);
      }
      EXPECT_EQ(ranks, mesh.world()) << name_of(kind);
    }
  }
}

TEST(MeshSvg, HasACellWithAHintForEveryRankOfASmallMesh) {
  for (const Mesh& mesh : small_meshes()) {
    const std::string text = mesh_svg({.mesh = mesh});
    EXPECT_EQ(count(text, "<title>rank "), static_cast<std::size_t>(mesh.world()));
    EXPECT_EQ(count(text, "<text"), count(text, "</text>"));
    EXPECT_TRUE(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
  }
}

TEST(MeshSvg, HasAFrameForEachPartOfANodeInARowOrOneForWholeRows) {
  const auto frames = [](const Mesh& mesh, int size) {
    return count(mesh_svg({.mesh = mesh, .ranks_per_node = size}), "<rect class=\"line\"");
  };
  EXPECT_EQ(frames({.data = 4, .pipeline = 3}, 4), 3u);
  EXPECT_EQ(frames({.data = 4, .pipeline = 4}, 8), 2u);
  EXPECT_EQ(frames({.data = 4, .pipeline = 2}, 2), 4u);
  EXPECT_EQ(frames({.data = 5, .pipeline = 3}, 2), 3u * 3u);
}

TEST(MeshSvg, StaysSmallWhenTheMeshIsLarge) {
  EXPECT_LT(mesh_svg({.mesh = kLarge, .ranks_per_node = 8}).size(), 300'000u);
}

}  // namespace
}  // namespace penstock::report
