// SPDX-License-Identifier: Apache-2.0
// The script with which bash completes penstock's command lines.
#pragma once

#include <string>

#include "cli/manual/interface.h"

namespace penstock::cli {

std::string bash_completion(const Interface& interface);

}  // namespace penstock::cli
