// SPDX-License-Identifier: Apache-2.0
// Compute time of a device whose program has exchanges.
#pragma once

#include <span>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::schedule {

// For each span of one device, in order: its seconds that overlap the device's compute ops.
std::vector<Seconds> seconds_inside_ops(const DeviceProgram& list, std::span<const Event> events,
                                        std::span<const ExchangeSpan> spans);

// For each op: its duration without the overlapping spans.
std::vector<Seconds> own_seconds(const DeviceProgram& list, std::span<const Event> events,
                                 std::span<const ExchangeSpan> spans);

// The sum of all compute ops without the waiting inside them, plus the serving outside them.
Seconds busy_seconds(const DeviceProgram& list, std::span<const Event> events,
                     std::span<const ExchangeSpan> spans);

}  // namespace penstock::schedule
