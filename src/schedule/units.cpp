// SPDX-License-Identifier: Apache-2.0
#include "schedule/units.h"

namespace penstock::schedule {

bool uses_vocabulary(const Op& op) {
  return op.kind == OpKind::SendEmbedding || op.kind == OpKind::VocabularyLoss ||
         (op.kind == OpKind::Forward && op.key.stage == 0);
}

bool contributes(const Program& program, const Op& op, int unit) {
  const bool backward = is_backward(op.kind) || op.kind == OpKind::BackwardWeight;
  if (unit == vocabulary_unit(program)) {
    const bool gradient = op.kind == OpKind::VocabularyLoss || op.kind == OpKind::EmbeddingGradient;
    return gradient || (is_backward(op.kind) && op.key.stage == 0);
  }
  if (!is_action(op.kind) || op.key.stage != unit) return false;
  return backward || unit + 1 == program.stages;
}

}  // namespace penstock::schedule
