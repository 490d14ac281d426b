// SPDX-License-Identifier: Apache-2.0
// `penstock plan` and the repository's questions.
#pragma once

#include <string>

#include "run_program.h"

namespace penstock::cli {

inline const std::string kPlans = PENSTOCK_SOURCE_DIR "/plans/";

inline testing::Ending plan(testing::Arguments words) {
  words.insert(words.begin(), {PENSTOCK_PROGRAM, "plan"});
  return testing::run_program(words);
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace penstock::cli
