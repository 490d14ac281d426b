// SPDX-License-Identifier: Apache-2.0
// Tables of published figures, and their score.
#include "base/error.h"
#include "fuzz/driver.h"
#include "plan/published/score.h"

namespace penstock::plan {
namespace {

constexpr std::size_t kMostRows = 8;  // each is predicted

void take(std::string_view input) {
  static const KnownMachines kKnown = [] {
    KnownMachines known;
    for (const char* name : {"a100", "a800", "h800"}) known.hardware[name] = sim::assumed_hardware();
    for (const char* name : {"kwai", "megatron-2022", "megatron-2024", "megatron-deepspeed", "fsdp2"})
      known.engines[name] = {sim::kPenstock, {name}};
    return known;
  }();
  const Table table(input, "fuzz");
  if (table.size() > kMostRows) throw InputError("too long");
  const Score scored = score(table, kKnown);
  print_score(scored);
  print_score_json(scored);
}

}  // namespace
}  // namespace penstock::plan

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::plan::take); }
