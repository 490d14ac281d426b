// SPDX-License-Identifier: Apache-2.0
// Names of ranks for people: number, place in the mesh, and host.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "mesh/mesh.h"

namespace penstock::comm {

struct RankName {
  std::string place;  // coordinates in the mesh, "d1 p2"; empty if there is one rank
  std::string host;
};
using RankNames = std::vector<RankName>;  // by rank

// Returns the names of all ranks of `world`, which form the mesh. Collective.
RankNames names_of_ranks(const mesh::Mesh& mesh, Communicator& world);

// "rank 3 (d1 p2, host n7)".
std::string print_rank(const RankNames& names, int rank);

// The ranks of each host, hosts in the order of their first ranks. `hosts`: by rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<std::string>& hosts);

// The first rank of each host whose ranks are all at least `first`, ascending.
std::vector<int> first_ranks_of_hosts(const std::vector<std::string>& hosts, int first);

}  // namespace penstock::comm
