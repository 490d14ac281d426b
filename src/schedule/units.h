// SPDX-License-Identifier: Apache-2.0
// Units: the sets of parameters that replicas reduce and gather as a whole.
#pragma once

#include "schedule/program.h"

namespace penstock::schedule {

// A unit is a stage or, under vocabulary parallelism, the device's rows of the embedding and of the output
// matrix. That unit's number follows the last stage's.
inline int vocabulary_unit(const Program& program) { return program.stages; }

// Returns whether the op adds to the unit's gradients. The F of the last stage forms those of the output
// layer.
bool contributes(const Program& program, const Op& op, int unit);

// Returns whether the op reads the device's rows of the sharded embedding or output matrix.
bool uses_vocabulary(const Op& op);

}  // namespace penstock::schedule
