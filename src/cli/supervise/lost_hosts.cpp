// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/lost_hosts.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/supervise/child.h"
#include "cli/supervise/signals.h"
#include "cli/tell.h"
#include "run/replicas.h"

namespace penstock::cli {
namespace {

std::string names_of(const std::vector<NamedHost>& hosts) {
  std::vector<std::string> names;
  for (const NamedHost& host : hosts) names.push_back(host.name);
  return join(names, ", ");
}

std::vector<NamedHost> without(const std::vector<NamedHost>& all, const std::vector<NamedHost>& some) {
  std::vector<NamedHost> others;
  for (const NamedHost& host : all) {
    if (std::ranges::find(some, host) == some.end()) others.push_back(host);
  }
  return others;
}

// Whether the mesh has a replica on the ranks of this command; assumes so if their number is not known.
bool may_run_on(const MpirunCommand& command, const std::vector<NamedHost>& hosts,
                const run::Options& options) {
  const auto ranks = ranks_on(command, hosts);
  return !ranks || run::holds_replicas(options, *ranks);
}

}  // namespace

void require_all(const MpirunCommand& command, const NamedHosts& named) {
  require_slots(command, named);
  std::vector<NamedHost> missing = without(named.hosts, hosts_that_answer(command, named));
  // Very busy hosts, and hosts whose link has just come back, may answer only the second time.
  if (!missing.empty() && !asked_to_end())
    missing = without(missing, hosts_that_answer(command, {named.options, missing}));
  if (!missing.empty() && !asked_to_end())
    throw InputError("mpirun starts nothing on " + names_of(missing) + ", named by " +
                     command[named.options.front()] + "; leave out missing hosts");
}

std::optional<MpirunCommand> command_on_what_is_left(const MpirunCommand& command, const NamedHosts& named,
                                                     const run::Options& options, int looks) {
  const bool mesh_follows = options.parallel.dp == 0;
  Seconds pause = 1;
  for (int look = 0; look <= looks; ++look, pause = std::min(60.0, 2 * pause)) {
    const std::vector<NamedHost> left = hosts_that_answer(command, named);
    if (asked_to_end()) return {};
    if (left.size() == named.hosts.size()) return command;
    const std::string lost = "mpirun starts nothing on " + names_of(without(named.hosts, left));
    if (mesh_follows && !left.empty()) {
      const MpirunCommand on_left = on_hosts(command, named, left);
      if (may_run_on(on_left, left, options)) {
        tell(lost + "; continues with " + names_of(left));
        return on_left;
      }
    }
    if (look == 0)
      tell(
          lost + "; waits for " +
          (mesh_follows ? "hosts with slots for a replica" : "all hosts, since parallel.dp is not \"auto\""));
    if (look == looks) tell(lost + " after " + counted(looks + 1, "check") + ": gives up");
    if (look == looks || !pause_for(pause)) return {};
  }
  return {};
}

}  // namespace penstock::cli
