// SPDX-License-Identifier: Apache-2.0
// Declares every generator function from the list catalogue.inc; each is defined in the file of its name. A
// generator gets a request that generate() has checked (p, m, n and v positive, v and n as its line in the
// list allows) and itself throws InputError for its further constraints.
#pragma once

#include "schedule/generators/generator.h"

namespace penstock::schedule {

#define PENSTOCK_SCHEDULE(function, ...) Schedule function(const Request& request);
#include "schedule/generators/catalogue.inc"
#undef PENSTOCK_SCHEDULE

}  // namespace penstock::schedule
