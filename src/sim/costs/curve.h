// SPDX-License-Identifier: Apache-2.0
// Interpolation in measured tables: linear in the logarithm of the position, clamped to the end values.
#pragma once

#include "base/options.h"

namespace penstock::sim {

// `at` is ascending, positive and not empty, and as long as `values`.
double on_curve(const Numbers& at, const Numbers& values, double position);

// values[i·columns.size() + j] belongs to rows[i] and columns[j]; both ascend, are positive and not empty.
double on_grid(const Numbers& rows, const Numbers& columns, const Numbers& values, double row, double column);

}  // namespace penstock::sim
