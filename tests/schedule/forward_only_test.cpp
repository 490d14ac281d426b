// SPDX-License-Identifier: Apache-2.0
#include "schedule/forward_only.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

Program evaluation_of(const char* name, int devices, int chunks, int slices, int micro_batches) {
  Request request{.devices = devices, .slices = {}, .chunks = chunks};
  request.slices.assign(static_cast<std::size_t>(micro_batches), slices);
  Lowering options;
  options.optimizer_step = false;
  return lower(forward_only(generate(name, request), micro_batches), options);
}

struct Evaluated {
  const char* name;
  int devices, chunks, slices, micro_batches;
};
constexpr Evaluated kSizes[] = {{"gpipe", 2, 1, 1, 8},       {"1f1b", 4, 1, 1, 9},
                                {"slimpipe", 3, 1, 6, 2},    {"slimpipe", 3, 2, 6, 2},
                                {"interleaved", 4, 2, 1, 8}, {"zb-v", 4, 2, 1, 8}};

TEST(BackPressure, NeverMakesACircleOfWaits) {
  for (const auto& [name, devices, chunks, slices, micro_batches] : kSizes) {
    const Program program = with_back_pressure(evaluation_of(name, devices, chunks, slices, micro_batches));
    for (unsigned seed = 0; seed < 5; ++seed)
      EXPECT_EQ(RandomExecution(program, seed).run(), "") << name << ", seed " << seed;
  }
}

// Every send of a group is waited for by the device's first action of the next group, and by nothing else.
TEST(BackPressure, LetsADeviceRunAheadByOneGroup) {
  for (const auto& [name, devices, chunks, slices, micro_batches] : kSizes) {
    const Program program = with_back_pressure(evaluation_of(name, devices, chunks, slices, micro_batches));
    for (const DeviceProgram& list : program.devices) {
      int unsettled = 0, most = 0;
      std::vector<bool> settled(list.ops.size());
      for (std::uint32_t i = 0; i < list.ops.size(); ++i) {
        for (const std::uint32_t wait : list.after_of(list.ops[i])) {
          if (list.ops[wait].kind != OpKind::SendForward || settled[wait]) continue;
          settled[wait] = true;
          --unsettled;
        }
        if (list.ops[i].kind == OpKind::SendForward) most = std::max(most, ++unsettled);
      }
      EXPECT_LE(most, devices * chunks) << name;
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
