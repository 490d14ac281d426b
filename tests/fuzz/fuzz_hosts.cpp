// SPDX-License-Identifier: Apache-2.0
// The hosts that are named for mpirun, as a file and as a list.
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "cli/supervise/hosts.h"
#include "fuzz/driver.h"

namespace penstock::cli {
namespace {

void expect_each_once(const std::vector<NamedHost>& hosts) {
  std::set<std::string> names;
  for (const NamedHost& host : hosts) {
    if (!names.insert(host.name).second) throw std::logic_error("a host is there twice");
    if (host.slots < 0) throw std::logic_error("fewer slots than none");
  }
}

void take(std::string_view input) {
  const std::vector<NamedHost> hosts = parse_host_file(input, "fuzz");
  expect_each_once(hosts);
  const MpirunCommand command{"mpirun", "-np",    "8",        "--host", std::string(input),
                              "-H",     "last:2", "penstock", "train"};
  const auto named = named_hosts(command);
  if (!named) throw std::logic_error("a list of hosts names none");
  expect_each_once(named->hosts);
  const auto left = named_hosts(on_hosts(command, *named, named->hosts));
  if (!left || left->options.size() != 1) throw std::logic_error("the hosts that are left are no list");
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::cli::take); }
