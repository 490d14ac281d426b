// SPDX-License-Identifier: Apache-2.0
// The hardware file of a measured machine; every figure states its method.
#pragma once

#include <string>

#include "profile/measurements.h"

namespace penstock::profile {

// TOML in the format of hardware/*.toml; `name` is the machine's name in the file. Ranks are its devices.
std::string hardware_text(const std::string& name, const MachineFacts& facts, const Measurements& measured);

}  // namespace penstock::profile
