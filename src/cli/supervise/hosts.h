// SPDX-License-Identifier: Apache-2.0
// The hosts that a command names for mpirun (Open MPI options), so that an attempt can leave out lost hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

struct NamedHost {
  std::string name;
  int slots = 0;  // 0: not given, as many as the host has
  friend bool operator==(const NamedHost&, const NamedHost&) = default;
};

struct NamedHosts {
  std::vector<std::size_t> options;  // indices of the command's --host or --hostfile words; values follow
  std::vector<NamedHost> hosts;
};

using MpirunCommand = std::vector<std::string>;

// Parses a host file of mpirun: one "name slots=2" per line, with any white space. A repeated host adds its
// slots. Throws InputError, starting with `origin`, for an invalid number of slots.
std::vector<NamedHost> parse_host_file(std::string_view text, const std::string& origin);

// Empty if the command is not mpirun or names no hosts. Throws InputError for an unreadable host file or an
// invalid number of slots.
std::optional<NamedHosts> named_hosts(const MpirunCommand& command);

// Throws InputError if more ranks are requested (-np) than the hosts have slots, unless the command or the
// environment allows mpirun to oversubscribe.
void require_slots(const MpirunCommand& command, const NamedHosts& named);

// Returns an mpirun command that starts one rank on the host, which does nothing, with the command's options
// for reaching hosts. `scratch`: a directory for this probe only, since mpiruns that share one remove each
// other's files.
MpirunCommand probe(const MpirunCommand& command, const NamedHost& host, const std::string& scratch);

// Returns the command for these hosts only, with at most as many ranks (-np) as they have slots. If slots are
// not given, or all hosts have fewer slots than ranks, scales the ranks by the share of hosts left.
MpirunCommand on_hosts(const MpirunCommand& command, const NamedHosts& all,
                       const std::vector<NamedHost>& left);

// Returns how many ranks the command starts on these hosts, which it names; empty if that depends on more
// than -np and their slots.
std::optional<std::int64_t> ranks_on(const MpirunCommand& command, const std::vector<NamedHost>& hosts);

// Returns the hosts that answer within a minute, all probed at once; all hosts if the probes cannot be run,
// for example without room for their files. Returns early, with fewer hosts, if asked to end (signals.h).
std::vector<NamedHost> hosts_that_answer(const MpirunCommand& command, const NamedHosts& all);

}  // namespace penstock::cli
