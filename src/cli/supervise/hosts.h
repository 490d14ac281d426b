// SPDX-License-Identifier: Apache-2.0
// The hosts that a command names for mpirun (Open MPI's words), so that an attempt can leave out those that
// are lost.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

struct NamedHost {
  std::string name;
  int slots = 0;  // 0: not told, as many as the host has
  friend bool operator==(const NamedHost&, const NamedHost&) = default;
};

struct NamedHosts {
  std::vector<std::size_t> options;  // words of the command, all --host or all --hostfile; values follow
  std::vector<NamedHost> hosts;
};

using MpirunCommand = std::vector<std::string>;

// A host file of mpirun: "name slots=2", a line each, with any white space; a host named again has more
// slots. Throws InputError, beginning with `origin`, for a count of slots that is no number.
std::vector<NamedHost> parse_host_file(std::string_view text, const std::string& origin);

// None where the command is no mpirun or names no hosts. Throws InputError for a host file that cannot be
// read or a count of slots that is no number.
std::optional<NamedHosts> named_hosts(const MpirunCommand& command);

// Throws InputError where more ranks are asked for (-np) than the hosts have slots, unless mpirun is told, by
// its words or by the environment, that they may have more.
void require_slots(const MpirunCommand& command, const NamedHosts& named);

// mpirun of one rank on the host, which does nothing, with those of the command's words that say how a host
// is reached. `scratch`: a directory of the probe's own, since mpiruns that share one remove each other's
// files.
MpirunCommand probe(const MpirunCommand& command, const NamedHost& host, const std::string& scratch);

// The command on these hosts alone, with no more ranks (-np) than they have slots; where slots are not told,
// or all have fewer than there are ranks, with as great a share of the ranks as of the hosts.
MpirunCommand on_hosts(const MpirunCommand& command, const NamedHosts& all,
                       const std::vector<NamedHost>& left);

// Those of the hosts that answer within a minute, probed all at once; all, if there is no room for probes'
// files.
std::vector<NamedHost> hosts_that_answer(const MpirunCommand& command, const NamedHosts& all);

}  // namespace penstock::cli
