// SPDX-License-Identifier: Apache-2.0
// Keys of the run file as words of a command.
#pragma once

#include <CLI/CLI.hpp>

namespace penstock::cli {

// Lets the command take --section.key VALUE (command.remaining()), and says so at the end of its help.
void take_run_keys(CLI::App& command);

}  // namespace penstock::cli
