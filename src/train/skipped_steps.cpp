// SPDX-License-Identifier: Apache-2.0
#include "train/skipped_steps.h"

namespace penstock::train {

std::string line_of_skipped(std::int64_t step, const StepReport& report) {
  const char* reason = report.without_targets ? "no token of the batch has a target"
                                              : "the loss or the gradient is not finite";
  return "step " + std::to_string(step) + ": " + reason + "; the step is skipped";
}

std::string line_of_giving_up(std::int64_t step, const std::string& checkpoint) {
  static_assert(kMostSkippedInARow == 3);
  return "three steps in a row had a loss or gradient that is not finite, the last at step " +
         std::to_string(step) + "; a smaller train.lr may help; " +
         (checkpoint.empty() ? "no checkpoint was written before"
                             : "the last good checkpoint is " + checkpoint);
}

}  // namespace penstock::train
