// SPDX-License-Identifier: Apache-2.0
// The line with which a rank reports its failure (failure_line() of cli/train/recorded.h).
#pragma once

#include <optional>
#include <string>

namespace penstock::cli {

// Returns <failure> from "rank 1: <failure> (p1, host n3)"; empty if the line has another form.
std::optional<std::string> failure_of_rank(const std::string& complaint);

}  // namespace penstock::cli
