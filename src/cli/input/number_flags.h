// SPDX-License-Identifier: Apache-2.0
// Validators for flags whose value is a number within limits.
#pragma once

#include <CLI/CLI.hpp>

namespace penstock::cli {

// Accepts whole numbers from `least` to the largest int, without leading zeros. The message names the value
// and the limits.
CLI::Validator whole_number_from(int least);

// Accepts lists of such numbers, "8,4,16"; an empty part is not a number.
CLI::Validator whole_numbers_from(int least);

// Accepts numbers from 0 to 1.
CLI::Validator share();

}  // namespace penstock::cli
