// SPDX-License-Identifier: Apache-2.0
// Describes the content of slices in words.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace penstock::cli {

// Returns, per micro-batch and slice, its tokens, their documents, and the share of keys that they attend to.
// Empty for a run without documents.
std::vector<std::vector<std::string>> notes_of_slices(const run::Run& run);

}  // namespace penstock::cli
