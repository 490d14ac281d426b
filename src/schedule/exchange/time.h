// SPDX-License-Identifier: Apache-2.0
// How much of its time a device that exchanges others computes.
#pragma once

#include <span>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::schedule {

// Of each span of one device, in order: the seconds that lie inside the device's compute ops.
std::vector<Seconds> seconds_inside_ops(const DeviceProgram& list, std::span<const Event> events,
                                        std::span<const ExchangeSpan> spans);

// Of each op: its time without the spans inside it.
std::vector<Seconds> own_seconds(const DeviceProgram& list, std::span<const Event> events,
                                 std::span<const ExchangeSpan> spans);

// All compute ops without the waiting inside them, and what was served outside them.
Seconds busy_seconds(const DeviceProgram& list, std::span<const Event> events,
                     std::span<const ExchangeSpan> spans);

}  // namespace penstock::schedule
