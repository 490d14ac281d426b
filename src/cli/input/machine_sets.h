// SPDX-License-Identifier: Apache-2.0
// All machines and programs that tables of published runs may name.
#pragma once

#include <string>

#include "plan/published/score.h"

namespace penstock::cli {

// All hardware files below the folder, by their name.
plan::HardwareSet read_hardware_folder(const std::string& folder);

// All files of engines/, by their name.
plan::EngineSet read_engines();

}  // namespace penstock::cli
