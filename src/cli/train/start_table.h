// SPDX-License-Identifier: Apache-2.0
// The table printed before the first step: model, data, schedule, machine, and the memory of each device.
#pragma once

#include <string>

#include "run/run.h"

namespace penstock::cli {

std::string start_table(const run::Run& run, const std::string& machine, int threads);

}  // namespace penstock::cli
