// SPDX-License-Identifier: Apache-2.0
// Reads a TOML file and `--section.key value` arguments into the targets of a table of options. Later words
// win: first the defaults, then the file, then the arguments.
//
// Every failure is an InputError of one line that begins with file:line or "command line" and names the key,
// the value and what would be right; unknown keys name the nearest known one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/options.h"
#include "train/options.h"

namespace penstock::cli {

void read_toml_file(const std::string& path, const OptionTable& table);
void read_toml(std::string_view text, std::string_view origin, const OptionTable& table);

// Each override is "--section.key=value", or "--section.key" followed by its value.
void apply_overrides(std::span<const std::string> arguments, const OptionTable& table);

// The options of a run as written, not resolved (resolve.h).
train::RunOptions read_run_file(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace penstock::cli
