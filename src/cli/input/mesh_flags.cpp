// SPDX-License-Identifier: Apache-2.0
#include "cli/input/mesh_flags.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/input/number_flags.h"
#include "report/mesh/mesh_picture.h"
#include "report/mesh/mesh_svg.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

mesh::Mesh mesh_of(const MeshFlags& flags, int pipeline) {
  std::int64_t ranks = 1;
  for (const int size : {pipeline, flags.data, flags.context, flags.tensor}) {
    ranks *= size;
    require(ranks <= kMostRanks, "a mesh of more than " + std::to_string(kMostRanks) +
                                     " ranks is not drawn; give a smaller -p, -d, -c or -t");
  }
  const mesh::Mesh mesh{.tensor = flags.tensor,
                        .context = flags.context,
                        .expert = flags.expert,
                        .data = flags.data,
                        .pipeline = pipeline};
  mesh::validate(mesh);
  return mesh;
}

}  // namespace

void add_mesh_flags(CLI::App& command, MeshFlags& flags, const std::vector<std::string>& shared) {
  const std::vector<CLI::Option*> others = command.get_options();
  CLI::Option* mesh =
      command.add_flag("--mesh", flags.wanted,
                       "draw the ranks of a mesh and their groups instead of a schedule: text, svg or json");
  for (CLI::Option* other : others) {
    const bool is_shared =
        std::ranges::any_of(shared, [&](const std::string& name) { return other->check_name(name); });
    if (!is_shared) mesh->excludes(other);
  }
  const std::pair<const char*, int*> sizes[] = {{"-d,--data", &flags.data},
                                                {"-t,--tensor", &flags.tensor},
                                                {"-c,--context", &flags.context},
                                                {"-e,--expert", &flags.expert},
                                                {"--gpus-per-node", &flags.gpus_per_node}};
  const char* meanings[] = {"with --mesh: replicas of the pipeline", "with --mesh: tensor-parallel ranks",
                            "with --mesh: context-parallel ranks",
                            "with --mesh: expert-parallel ranks, out of t · c · d",
                            "with --mesh: ranks per node, shown in the picture"};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    command.add_option(sizes[i].first, *sizes[i].second, meanings[i])
        ->check(whole_number_from(1))
        ->needs(mesh);
  }
}

std::string mesh_drawing(const MeshFlags& flags, int pipeline, const std::string& format) {
  const report::MeshPicture picture{.mesh = mesh_of(flags, pipeline), .ranks_per_node = flags.gpus_per_node};
  if (format == "svg") return report::mesh_svg(picture);
  if (format == "json") return report::mesh_json(picture);
  require(format == "text",
          "--format " + format + " works only for schedules; with --mesh use text, svg or json");
  return report::mesh_text(picture);
}

}  // namespace penstock::cli
