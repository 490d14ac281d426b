// SPDX-License-Identifier: Apache-2.0
// The table of options as people read it: printed configuration, help, documentation.
#pragma once

#include <string>

#include "base/options.h"

namespace penstock::cli {

// Valid TOML, a section after the other; reading it gives the same options. Options that were not given are
// left out.
std::string print_toml(const OptionTable& table);

// For --help: one line a key, with its present value as the default.
std::string print_help(const OptionTable& table);

// docs/options.md: a table per section, from a table of fresh options.
std::string print_markdown(const OptionTable& table);

// What `penstock train` reads, with the defaults.
std::string run_options_help();
std::string run_options_markdown();

}  // namespace penstock::cli
