// SPDX-License-Identifier: Apache-2.0
// Arithmetic of reductions.
#pragma once

#include <cstddef>

#include "comm/communicator.h"

namespace penstock::comm {

std::size_t size_of(Type type);

// into[i] = into[i] (reduction) from[i]. Both aligned for the type and not overlapping.
void combine(void* into, const void* from, std::size_t count, Type type, Reduction reduction);

}  // namespace penstock::comm
