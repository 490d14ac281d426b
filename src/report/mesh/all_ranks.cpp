// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/all_ranks.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace penstock::report {
namespace {

struct Coordinate {
  mesh::Group group;  // ranks that differ only in this coordinate
  int mesh::Mesh::*size;
  int mesh::Coordinates::*at;
};
constexpr std::array kCoordinates{
    Coordinate{mesh::Group::Tensor, &mesh::Mesh::tensor, &mesh::Coordinates::tensor},
    Coordinate{mesh::Group::Context, &mesh::Mesh::context, &mesh::Coordinates::context},
    Coordinate{mesh::Group::Replica, &mesh::Mesh::data, &mesh::Coordinates::data},
    Coordinate{mesh::Group::Pipeline, &mesh::Mesh::pipeline, &mesh::Coordinates::pipeline}};

std::string rank_name(const mesh::Mesh& mesh, std::int64_t rank) {
  const std::string place = print_place(mesh, rank);
  return "rank " + std::to_string(rank) + ":" + (place.empty() ? "" : " " + place);
}

// The groups of a kind are numbered in the order of their first ranks.
RowGroups groups_of(const mesh::Mesh& mesh, mesh::Group kind) {
  RowGroups groups{.name = std::string(mesh::name_of(kind)), .group_of = std::vector<int>(mesh.world(), -1)};
  int count = 0;
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
    if (groups.group_of[rank] >= 0) continue;
    for (const std::int64_t member : mesh::members(mesh, kind, rank)) groups.group_of[member] = count;
    ++count;
  }
  return groups;
}

}  // namespace

schedule::Program program_of_ranks(const schedule::Program& program, const mesh::Mesh& mesh) {
  PENSTOCK_CHECK(program.device_count() == mesh.pipeline, "a program has the pipeline devices of its mesh");
  schedule::Program all{
      .name = program.name, .stages = program.stages, .slices = program.slices, .devices = {}};
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
    mesh::Coordinates at = mesh.coordinates_of(rank);
    schedule::DeviceProgram& list = all.devices.emplace_back(program.devices[at.pipeline]);
    for (schedule::Op& op : list.ops) {
      if (op.peer < 0) continue;
      at.pipeline = op.peer;
      op.peer = static_cast<std::int32_t>(mesh.rank_of(at));
    }
  }
  return all;
}

Run run_of_ranks(std::string name, const schedule::Program& program, const mesh::Mesh& mesh,
                 std::vector<Track> steps) {
  Run run{.name = std::move(name), .program = program_of_ranks(program, mesh), .measured = std::move(steps)};
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) run.rows.push_back(rank_name(mesh, rank));
  for (const Coordinate& axis : kCoordinates) {
    if (mesh.*axis.size > 1 && mesh::size(mesh, axis.group) < mesh.world())
      run.groups.push_back(groups_of(mesh, axis.group));
  }
  return run;
}

}  // namespace penstock::report
