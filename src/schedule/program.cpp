// SPDX-License-Identifier: Apache-2.0
#include "schedule/program.h"

#include "base/error.h"

namespace penstock::schedule {

std::uint32_t DeviceProgram::append(Op op, std::span<const std::uint32_t> waits) {
  const auto index = static_cast<std::uint32_t>(ops.size());
  op.after_begin = static_cast<std::uint32_t>(after.size());
  op.after_count = static_cast<std::uint32_t>(waits.size());
  for (const std::uint32_t wait : waits) {
    PENSTOCK_CHECK(wait < index, "an op waits only for ops issued before it");
    after.push_back(wait);
  }
  ops.push_back(op);
  return index;
}

}  // namespace penstock::schedule
