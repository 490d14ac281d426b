// SPDX-License-Identifier: Apache-2.0
// The generators by name, one line each; every one is defined in the file of its name.
#pragma once

#include "schedule/generators/generator.h"

namespace penstock::schedule {

Schedule gpipe(const Request& request);
Schedule one_f_one_b(const Request& request);
Schedule slimpipe(const Request& request);

}  // namespace penstock::schedule
