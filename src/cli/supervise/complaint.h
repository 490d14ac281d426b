// SPDX-License-Identifier: Apache-2.0
// The line with which a rank tells of its failure (failure_line() of cli/train/recorded.h).
#pragma once

#include <optional>
#include <string>

namespace penstock::cli {

// <failure> of "rank 1: <failure> (p1, host n3)"; none where the line is not of this form.
std::optional<std::string> failure_of_rank(const std::string& complaint);

}  // namespace penstock::cli
