// SPDX-License-Identifier: Apache-2.0
// penstock plan: the best way to run a model on a cluster; one configuration explained; published figures
// scored; the constants of the hardware files fitted.
#pragma once

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace penstock::cli {

void add_plan_command(CLI::App& program, Exit& exit_code);

}  // namespace penstock::cli
