// SPDX-License-Identifier: Apache-2.0
// Copies between memories of the compute device and of the host.
#pragma once

#include <cstddef>

namespace penstock::backend {

// Done when it returns on the CPU; in the order of the calling thread's stream on a card, where either side
// may be the card's memory or the host's.
void copy_bytes(void* to, const void* from, std::size_t bytes);

// Returns when the device has done all that this thread has issued.
void synchronize();

}  // namespace penstock::backend
