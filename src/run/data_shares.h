// SPDX-License-Identifier: Apache-2.0
// Data shares: training, validation and test of one source, and several sources in one run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "run/options.h"

namespace penstock::run {

// The order of samples drawn from several sources repeats with this period; a share is exact to 1 / period.
inline constexpr std::int64_t kMixturePeriod = 10'000;

// The shares of training, validation and test in a split such as "969,30,1": one to three numbers, the first
// positive, normalised by their sum. InputError naming data.split.
std::vector<double> parse_split(std::string_view split);

// Throws InputError unless at most one source of data is given, with only its own keys, and every share is at
// least 1 / kMixturePeriod.
// data.mask = "auto" becomes what it means for the data.
void settle_mask(DataOptions& data);

void check_data(const DataOptions& data);

}  // namespace penstock::run
