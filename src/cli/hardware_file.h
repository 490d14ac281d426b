// SPDX-License-Identifier: Apache-2.0
// Hardware files: hardware/NAME.toml, or a path.
#pragma once

#include <string>

#include "plan/hardware.h"
#include "plan/score.h"

namespace penstock::cli {

// The file of that name: a path with a slash or ".toml" as it is, taken from `beside` when it is relative; a
// bare name in hardware/ of the working directory, of `beside` and its parent, and of the program's own tree.
// Throws InputError naming the known names.
std::string find_hardware_file(const std::string& name, const std::string& beside);

// Reads and validates. Throws InputError that names file, line and key.
plan::Hardware read_hardware_file(const std::string& path);

// The same of a text, for its refusals alone.
void check_hardware_text(const std::string& text, const std::string& origin);

// All files of the folder that `name` is in, by their name.
plan::HardwareSet read_hardware_folder(const std::string& folder);

}  // namespace penstock::cli
