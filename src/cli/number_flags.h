// SPDX-License-Identifier: Apache-2.0
// Flags whose value is a whole number.
#pragma once

#include <CLI/CLI.hpp>

namespace penstock::cli {

// Accepts whole numbers from `least` to the greatest int; the message names the value and the limits.
CLI::Validator whole_number_from(int least);

}  // namespace penstock::cli
