// SPDX-License-Identifier: Apache-2.0
#include "train/step_metrics.h"

namespace penstock::train {

StepMetrics metrics_of(const StepReport& report) {
  return {.loss = report.without_targets ? std::nullopt : std::optional(report.loss),
          .grad_norm = report.grad_norm,
          .lr = report.lr,
          .step_s = report.seconds,
          .bubble_fraction = report.bubble_fraction,
          .peak_bytes = report.peak_bytes,
          .copy_hidden = report.copy_hidden,
          .collective_hidden = report.collective_hidden,
          .traffic = report.traffic,
          .load = report.load,
          .documents = report.documents,
          .skipped = report.skipped};
}

void take_last_step(Summary& summary, const StepReport& report) {
  summary.copy_hidden = report.copy_hidden;
  summary.collective_hidden = report.collective_hidden;
  summary.traffic = report.traffic;
  summary.step_s = report.seconds;
}

}  // namespace penstock::train
