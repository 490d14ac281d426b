// SPDX-License-Identifier: Apache-2.0
// Inserts ops into one device's list for a pass: source ops stay in order, new ops go between them, and the
// wait lists of source ops are renumbered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

class Rewriter {
 public:
  // The source must outlive the rewriter. `inserted`: estimate of the number of new ops, for reserve().
  Rewriter(const DeviceProgram& source, std::size_t inserted) : source_(source) {
    moved_to_.reserve(source.ops.size());
    result_.ops.reserve(source.ops.size() + inserted);
  }

  // Appends the next op of the source, which also waits for `extra` (indices in the result). Returns its
  // index in the result.
  std::uint32_t keep_next(std::span<const std::uint32_t> extra = {});

  // Appends a new op; `waits` are indices in the result. Returns its index in the result.
  std::uint32_t insert(const Op& op, std::span<const std::uint32_t> waits = {}) {
    return result_.append(op, waits);
  }

  // Returns the result's index of a source op that was already kept.
  std::uint32_t moved_to(std::uint32_t source_index) const { return moved_to_[source_index]; }

  std::uint32_t kept() const { return static_cast<std::uint32_t>(moved_to_.size()); }

  DeviceProgram take() { return std::move(result_); }

 private:
  const DeviceProgram& source_;
  DeviceProgram result_;
  std::vector<std::uint32_t> moved_to_;  // [source index]
  std::vector<std::uint32_t> waits_;     // scratch
};

}  // namespace penstock::schedule
