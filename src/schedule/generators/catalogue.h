// SPDX-License-Identifier: Apache-2.0
// Every generator's function, declared by the list catalogue.inc and defined in the file of its name. Each
// takes a request that generate() has checked (p, m, n and v positive, v and n as its line in the list says)
// and refuses the rest itself.
#pragma once

#include "schedule/generators/generator.h"

namespace penstock::schedule {

#define PENSTOCK_SCHEDULE(function, ...) Schedule function(const Request& request);
#include "schedule/generators/catalogue.inc"
#undef PENSTOCK_SCHEDULE

}  // namespace penstock::schedule
