// SPDX-License-Identifier: Apache-2.0
// How long each rank of a run takes for equal work, as the run has recorded it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace penstock::cli {

// By rank, over the median rank's; none: not compared. `origin` begins the InputError of a number that is no
// time.
using RankTimes = std::optional<std::vector<double>>;

// Of metrics.jsonl: the mean of the comparisons since the program last started. Lines that are no step's, or
// cut short, are left out.
RankTimes times_in_metrics(std::string_view metrics, std::string_view origin);

// Of summary.json; throws InputError where that is no JSON object.
RankTimes times_in_summary(std::string_view summary, std::string_view origin);

}  // namespace penstock::cli
