// SPDX-License-Identifier: Apache-2.0
// The hardware file of a measured machine, every figure with how it was found.
#pragma once

#include <string>

#include "profile/measurements.h"

namespace penstock::profile {

// TOML in the form of hardware/*.toml; `name` is what the file calls the machine. Ranks are its devices.
std::string hardware_text(const std::string& name, const MachineFacts& facts, const Measurements& measured);

}  // namespace penstock::profile
