// SPDX-License-Identifier: Apache-2.0
// The memory of this process's current card.
#pragma once

#include "backend/device_memory.h"

namespace penstock::backend {

DeviceMemory& card_memory();

}  // namespace penstock::backend
