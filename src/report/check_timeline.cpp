// SPDX-License-Identifier: Apache-2.0
#include "report/check_timeline.h"

#include <cstddef>

#include "base/error.h"

namespace penstock::report {

void check_timeline(const schedule::Program& program, const schedule::Timeline& timeline) {
  PENSTOCK_CHECK(timeline.devices.size() == program.devices.size(),
                 "a timeline has the devices of its program");
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    PENSTOCK_CHECK(timeline.devices[d].size() == program.devices[d].ops.size(),
                   "a timeline has one event per op");
  }
}

}  // namespace penstock::report
