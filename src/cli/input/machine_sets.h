// SPDX-License-Identifier: Apache-2.0
// All machines and engines that tables of published runs may name.
#pragma once

#include <string>

#include "plan/published/score.h"

namespace penstock::cli {

// Reads all hardware files below the folder, keyed by name.
plan::HardwareSet read_hardware_folder(const std::string& folder);

// Reads all files of engines/, keyed by name.
plan::EngineSet read_engines();

}  // namespace penstock::cli
