// SPDX-License-Identifier: Apache-2.0
// Programs that law tests run over: every generator at many sizes, where it accepts them.
#pragma once

#include <vector>

#include "base/error.h"
#include "schedule/generators/generator.h"

namespace penstock::schedule {

// Every schedule that the list of generators makes for p, m, n and v up to small sizes. A generator that
// refuses a request (InputError) is left out there.
inline std::vector<Schedule> example_schedules() {
  std::vector<Schedule> schedules;
  for (const Generator& generator : generators()) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int m : {1, 2, 4, 6}) {
        for (const int n : {1, 2, 4}) {
          for (const int v : {0, 2}) {
            try {
              schedules.push_back(generate(generator.name, request(p, m, n, v)));
            } catch (const InputError&) {
              continue;
            }
          }
        }
      }
    }
  }
  return schedules;
}

}  // namespace penstock::schedule
