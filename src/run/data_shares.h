// SPDX-License-Identifier: Apache-2.0
// Data shares: training, validation and test splits of a source, and mixtures of several sources.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "run/options.h"

namespace penstock::run {

// The order of samples drawn from several sources repeats with this period; a share is exact to 1 / period.
inline constexpr std::int64_t kMixturePeriod = 10'000;

// The shares of training, validation and test in a split such as "969,30,1": one to three numbers, the first
// positive, normalised by their sum. Throws InputError naming data.split.
std::vector<double> parse_split(std::string_view split);

// Throws InputError unless at most one source of data is given, with only its own keys, and every share is at
// least 1 / kMixturePeriod.
void check_data(const DataOptions& data);

// Resolves data.mask = "auto". Throws InputError for "documents" if the data has none.
void settle_mask(DataOptions& data);

// Resolves data.window = 0 to 16 batches for packing = "balanced". Throws InputError for packing keys that do
// not apply. The mask must be settled.
void settle_packing(DataOptions& data, std::int64_t batch);

}  // namespace penstock::run
