// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/rewriter.h"

#include "base/error.h"

namespace penstock::schedule {

std::uint32_t Rewriter::keep_next(std::span<const std::uint32_t> extra) {
  PENSTOCK_CHECK(kept() < source_.ops.size(), "an op is kept once");
  const Op& op = source_.ops[kept()];
  waits_.clear();
  for (const std::uint32_t wait : source_.after_of(op)) waits_.push_back(moved_to_[wait]);
  waits_.insert(waits_.end(), extra.begin(), extra.end());
  moved_to_.push_back(result_.append(op, waits_));
  return moved_to_.back();
}

}  // namespace penstock::schedule
