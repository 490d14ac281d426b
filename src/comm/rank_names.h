// SPDX-License-Identifier: Apache-2.0
// What people call a rank: its number, its place in the mesh, and its host.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "mesh/mesh.h"

namespace penstock::comm {

struct RankName {
  std::string place;  // coordinates in the mesh, "d1 p2"; empty where there is one rank
  std::string host;
};
using RankNames = std::vector<RankName>;  // by rank

// Of all ranks, whose mesh this is. Collective.
RankNames names_of_ranks(const mesh::Mesh& mesh, Communicator& world);

// "rank 3 (d1 p2, host n7)".
std::string print_rank(const RankNames& names, int rank);

// The ranks of each host, hosts in the order of their first ranks. `hosts`: by rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<std::string>& hosts);

// The first rank of each host whose ranks all come from `first` on, ascending.
std::vector<int> first_ranks_of_hosts(const std::vector<std::string>& hosts, int first);

}  // namespace penstock::comm
