// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace penstock::plan {

// torchtitan's names of the schedules that are predicted.
struct TitanSchedule {
  std::string_view theirs, ours;
  int chunks;  // default stages per device
};
inline constexpr TitanSchedule kTitanSchedules[] = {{"1F1B", "1f1b", 1},
                                                    {"GPipe", "gpipe", 1},
                                                    {"Interleaved1F1B", "interleaved", 2},
                                                    {"ZBVZeroBubble", "zb-v", 2},
                                                    {"DualPipeV", "dualpipe-v", 2}};

}  // namespace penstock::plan
