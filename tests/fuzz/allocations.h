// SPDX-License-Identifier: Apache-2.0
// What a target allocates for an input. Counted by the hooks of the address sanitizer; without it nothing is.
#pragma once

#include <cstddef>

namespace penstock::fuzz {

// From now on; what was allocated before does not count, also when it is freed.
void begin_allocations();

// The greatest number of bytes that lived at one time since, a single allocation included.
std::size_t most_allocated();

bool counts_allocations();

}  // namespace penstock::fuzz
