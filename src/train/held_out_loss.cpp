// SPDX-License-Identifier: Apache-2.0
#include "train/held_out_loss.h"

namespace penstock::train {

std::optional<double> held_out_loss(const TokenData& data, TokenData::Part part, Trainer& trainer) {
  double sum = 0;
  double targets = 0;
  for (std::int64_t index = 0; index < data.evaluation_batches(); ++index) {
    const StepTokens batch = data.evaluation_batch(index, part);
    if (batch.target_count == 0) continue;  // the same on every rank
    sum += trainer.evaluate(batch) * static_cast<double>(batch.target_count);
    targets += static_cast<double>(batch.target_count);
  }
  return targets > 0 ? std::optional(sum / targets) : std::nullopt;
}

}  // namespace penstock::train
