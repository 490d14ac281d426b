// SPDX-License-Identifier: Apache-2.0
// What a slice holds, in words.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace penstock::cli {

// Of each micro-batch and slice: its tokens, the documents that they are of, and how much they attend to.
// Empty for a run without documents.
std::vector<std::vector<std::string>> notes_of_slices(const run::Run& run);

}  // namespace penstock::cli
