// SPDX-License-Identifier: Apache-2.0
// Compares all schedules at one size.
#pragma once

#include <string>

#include "cli/input/schedule_flags.h"

namespace penstock::cli {

// Returns a Markdown table with a row per schedule: peak in flight of the fullest device and both bubbles at
// unit costs (F = 1, B = 2, I = W = 1), and messages sent. `flags` gives p, m, and n for schedules that take
// slices; each schedule uses its default number of chunks. Schedules that refuse the size have a row with the
// reason.
std::string compare_schedules(const ScheduleFlags& flags);

}  // namespace penstock::cli
