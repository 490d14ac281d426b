// SPDX-License-Identifier: Apache-2.0
// The flags of a mesh of ranks, for show --mesh.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace penstock::cli {

struct MeshFlags {
  bool wanted = false;  // --mesh
  int data = 1;         // -d
  int tensor = 1;       // -t
  int context = 1;      // -c
  int expert = 1;       // -e
  int gpus_per_node = 0;
};

// Adds the flags. --mesh excludes all options that the command already has, except those named in `shared`.
void add_mesh_flags(CLI::App& command, MeshFlags& flags, const std::vector<std::string>& shared);

// Formats: "text", "svg", "json". Throws InputError for other formats and for sizes that do not fit.
std::string mesh_drawing(const MeshFlags& flags, int pipeline, const std::string& format);

}  // namespace penstock::cli
