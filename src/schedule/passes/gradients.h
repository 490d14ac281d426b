// SPDX-License-Identifier: Apache-2.0
// Adds the sums of gradients that live on several devices: those of tied embeddings, between the first and
// the last stage.
#pragma once

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

struct GradientSync {
  bool tied_embeddings = false;
  Bytes tied_bytes = 0;  // of V·h elements of the accumulator type those that the rank has the states of
};

// Law: with tied embeddings the devices of stage 0 and of stage S-1 each end in one REDUCE_GRAD of that
// stage, naming each other as peer; when both stages live on one device, it has one REDUCE_GRAD of stage 0
// without a peer. Nothing else changes. The op waits for all the device's compute: placed right after the
// last stage's own backward it would hold up the other stages of that device, for which stage 0 waits. Throws
// InputError for tied embeddings when a stage has replicas (DualPipe).
Program add_gradient_sync(Program program, const GradientSync& sync);

}  // namespace penstock::schedule
