// SPDX-License-Identifier: Apache-2.0
// Time that each rank of a run takes for equal work, as recorded by the run.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace penstock::cli {

// One per rank, relative to the median rank; empty if not compared. InputError for an invalid time starts
// with `origin`.
using RankTimes = std::optional<std::vector<double>>;

// From metrics.jsonl: the mean of the comparisons since the program last started. Skips truncated lines and
// lines without a step.
RankTimes times_in_metrics(std::string_view metrics, std::string_view origin);

// From summary.json. Throws InputError if that is not a JSON object.
RankTimes times_in_summary(std::string_view summary, std::string_view origin);

}  // namespace penstock::cli
