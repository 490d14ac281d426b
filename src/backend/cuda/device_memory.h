// SPDX-License-Identifier: Apache-2.0
// The memory of this process's current GPU.
#pragma once

#include "backend/device_memory.h"

namespace penstock::backend {

DeviceMemory& gpu_memory();

}  // namespace penstock::backend
