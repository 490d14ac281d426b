// SPDX-License-Identifier: Apache-2.0
// Adds the gradient sums of parameters that live on several devices: tied embeddings, on the first and the
// last stage.
#pragma once

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

struct GradientSync {
  bool tied_embeddings = false;
  Bytes tied_bytes = 0;  // V·h accumulator elements, only those whose optimizer states the rank has
};

// Law: with tied embeddings, the lists of the devices of stage 0 and of stage S-1 each end with one
// REDUCE_GRAD of that stage, with each other as peer; if both stages live on one device, it has one
// REDUCE_GRAD of stage 0 without a peer. Nothing else changes. The op waits for all compute of the device:
// right after the last stage's own backward it would delay the device's other stages, for which stage 0
// waits. Throws InputError for tied embeddings if a stage has replicas (DualPipe).
Program add_gradient_sync(Program program, const GradientSync& sync);

}  // namespace penstock::schedule
