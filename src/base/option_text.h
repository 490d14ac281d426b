// SPDX-License-Identifier: Apache-2.0
// The option table as text: printed configuration, help, documentation.
#pragma once

#include <string>

#include "base/options.h"

namespace penstock {

// Valid TOML, section by section; reading it back gives the same options. Options not given are left out.
std::string print_toml(const OptionTable& table);

// The options whose values differ from `defaults`, a table with the same rows; as a table and as TOML.
OptionTable changed(const OptionTable& table, const OptionTable& defaults);
std::string print_changed_toml(const OptionTable& table, const OptionTable& defaults);

// The current value as the default: as TOML, or in words if it depends on other options.
std::string default_text(const Option& option);

// For --help: one line per key, with its current value as the default.
std::string print_help(const OptionTable& table);

// docs/options.md: one table per section, from default-constructed options.
std::string print_markdown(const OptionTable& table);

}  // namespace penstock
