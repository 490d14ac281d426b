// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_names.h"

#include <map>

#include "comm/launcher.h"
#include "comm/texts.h"

namespace penstock::comm {

RankNames names_of_ranks(const mesh::Mesh& mesh, Communicator& world) {
  RankNames names;
  for (std::string& host : all_texts(host_name(), world)) {
    const auto rank = static_cast<std::int64_t>(names.size());
    names.push_back({print_place(mesh, rank), std::move(host)});
  }
  return names;
}

std::string print_rank(const RankNames& names, int rank) {
  const RankName& name = names.at(static_cast<std::size_t>(rank));
  return "rank " + std::to_string(rank) + " (" + name.place + (name.place.empty() ? "" : ", ") + "host " +
         name.host + ")";
}

std::vector<std::vector<int>> ranks_by_host(const std::vector<std::string>& hosts) {
  std::map<std::string, std::size_t> numbers;
  std::vector<std::vector<int>> ranks;
  int rank = 0;
  for (const std::string& host : hosts) {
    const auto [found, added] = numbers.emplace(host, ranks.size());
    if (added) ranks.emplace_back();
    ranks[found->second].push_back(rank++);
  }
  return ranks;
}

std::vector<int> first_ranks_of_hosts(const std::vector<std::string>& hosts, int first) {
  std::vector<int> ranks;
  for (const std::vector<int>& here : ranks_by_host(hosts)) {
    if (here.front() >= first) ranks.push_back(here.front());
  }
  return ranks;
}

}  // namespace penstock::comm
