// SPDX-License-Identifier: Apache-2.0
// Units: what replicas reduce and gather together.
#pragma once

#include "schedule/program.h"

namespace penstock::schedule {

// A unit is a stage, or under vocabulary parallelism the device's rows of the embedding and of the output
// matrix, which have the number after the last stage's.
inline int vocabulary_unit(const Program& program) { return program.stages; }

// Whether the op adds to gradients of the unit. Those of the output layer are formed by the F of the last
// stage.
bool contributes(const Program& program, const Op& op, int unit);

// Whether the op reads the device's rows of the embedding or of the output matrix, where these are sharded.
bool uses_vocabulary(const Op& op);

}  // namespace penstock::schedule
