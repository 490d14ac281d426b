// SPDX-License-Identifier: Apache-2.0
// Plan files, and the question that they ask of a machine of fixed speeds.
#include <stdexcept>

#include "base/option_text.h"
#include "files/option_file.h"
#include "fuzz/driver.h"
#include "plan/plan_options.h"

namespace penstock::plan {
namespace {

void take(std::string_view input) {
  PlanOptions options, again;
  OptionTable table, other;
  describe(options, table);
  describe(again, other);
  files::read_toml(input, "fuzz", table);
  const std::string once = print_toml(table);
  files::read_toml(once, "fuzz", other);
  if (print_toml(other) != once) throw std::logic_error("printing and parsing are not inverse");
  const Workload workload = workload_of(options);
  sim::Hardware hardware = sim::assumed_hardware();
  hardware.device.memory_gb = 80;
  const Cluster cluster = cluster_of(options, hardware);
  space_of(options);
  layout_of(options, workload, cluster);
}

}  // namespace
}  // namespace penstock::plan

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::plan::take); }
