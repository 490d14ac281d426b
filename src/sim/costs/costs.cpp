// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/costs.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace penstock::sim {

Seconds checked_seconds(std::string_view name, Seconds value) {
  if (std::isfinite(value) && value >= 0) return value;
  throw InputError(std::string(name) + ": " + std::to_string(value) +
                   " is not a time; expected finite seconds, zero or more");
}

}  // namespace penstock::sim
