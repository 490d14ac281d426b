// SPDX-License-Identifier: Apache-2.0
// Tables of costs: a digit each for stages, slices and devices, then the table.
#include <stdexcept>

#include "base/error.h"
#include "fuzz/driver.h"
#include "sim/costs/table.h"

namespace penstock::sim {
namespace {

void take(std::string_view input) {
  if (input.size() < 3) throw InputError("too short");
  const auto digit = [&](std::size_t at) { return 1 + (static_cast<unsigned char>(input[at]) & 7); };
  const TableExtent extent{digit(0), digit(1), digit(2)};
  const CostTable table = parse_cost_table(input.substr(3), "fuzz", extent);
  for (int stage = 0; stage < extent.stages; ++stage) {
    for (int slice = 0; slice < extent.slices; ++slice) {
      const auto seconds = table.find_seconds(schedule::OpKind::Forward, stage, slice);
      if (seconds && !(*seconds >= 0)) throw std::logic_error("a time below zero was accepted");
    }
  }
  for (int device = 0; device < extent.devices; ++device) {
    if (!(table.link(0, device).bytes_per_second > 0))
      throw std::logic_error("a link without a rate was accepted");
  }
}

}  // namespace
}  // namespace penstock::sim

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::sim::take); }
