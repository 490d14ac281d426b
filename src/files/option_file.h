// SPDX-License-Identifier: Apache-2.0
// Reads a TOML file and `--section.key value` arguments into the targets of an option table. Later values
// override: defaults, then the file, then the arguments.
//
// Every failure is a one-line InputError that begins with file:line or "command line" and names the key, the
// value and the valid ones; for unknown keys, the nearest known one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/options.h"

namespace penstock::files {

// Both return the keys given, as "section.key".
Words read_toml_file(const std::string& path, const OptionTable& table);
Words read_toml(std::string_view text, std::string_view origin, const OptionTable& table);

// Returns all values of a file with their sections, for files in which many keys are not ours. Throws
// InputError if it is not TOML.
std::vector<GivenValue> read_toml_values(std::string_view text, std::string_view origin);

// Throws InputError for a word that begins with "-" and is no setting. To be called before a file is opened:
// the value of a misspelt flag may have been taken for the file.
void require_settings(std::span<const std::string> arguments, const OptionTable& table);

// Each override is "--section.key=value", or "--section.key" followed by its value.
void apply_overrides(std::span<const std::string> arguments, const OptionTable& table);

}  // namespace penstock::files
