// SPDX-License-Identifier: Apache-2.0
// The bytes that the passes give to the messages of a program.
#pragma once

#include <memory>

#include "schedule/passes/lower.h"
#include "sim/costs/bytes.h"

namespace penstock::sim {

// Transfers, vocabulary visits and embedded parts, for programs whose slices are those of `bytes`.
schedule::Lowering lowering_of(const std::shared_ptr<const RunBytes>& bytes);

}  // namespace penstock::sim
