// SPDX-License-Identifier: Apache-2.0
// Measured tables as functions: between two points linear over the logarithm of the position, beyond the
// ends the end's value.
#pragma once

#include "base/options.h"

namespace penstock::sim {

// `at` ascends, is positive and not empty; as many values.
double on_curve(const Numbers& at, const Numbers& values, double position);

// values[i·columns.size() + j] belongs to rows[i] and columns[j]; both ascend, are positive and not empty.
double on_grid(const Numbers& rows, const Numbers& columns, const Numbers& values, double row, double column);

}  // namespace penstock::sim
