// SPDX-License-Identifier: Apache-2.0
// Reads profile.json (train/record/step_profile.h). Kernels and blocks keep their names, which need not be
// this program's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace penstock::train {

// A call of a named kernel.
struct NamedCall {
  std::string block;
  std::string kernel;
  Seconds start = 0;
  Seconds end = 0;
};
struct NamedProfile {
  std::int64_t step = 0;
  std::vector<std::vector<NamedCall>> devices;
};
// Throws InputError that begins with `origin`.
std::vector<NamedProfile> parse_profiles(std::string_view json, std::string_view origin);

}  // namespace penstock::train
