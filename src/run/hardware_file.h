// SPDX-License-Identifier: Apache-2.0
// Hardware files: hardware/NAME.toml, or a path.
#pragma once

#include <string>

#include "sim/costs/hardware.h"

namespace penstock::run {

// Finds the file of a name (description_file.h): a path as given, or a bare name in hardware/. Throws
// InputError naming the known names.
std::string find_hardware_file(const std::string& name, const std::string& beside);

struct HardwareFile {
  sim::Hardware hardware;
  Words assumed;  // speeds that the file does not give, with their defaults: "efficiency.matrix = 0.8"
};

// Reads and validates. Throws InputError that names file, line and key.
HardwareFile read_hardware_file(const std::string& path);

// The same for a text, which errors call `origin`.
HardwareFile parse_hardware_text(const std::string& text, const std::string& origin);

}  // namespace penstock::run
