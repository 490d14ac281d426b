// SPDX-License-Identifier: Apache-2.0
#include "backend/device_memory.h"

namespace penstock::backend {
namespace {

DeviceMemory* in_use = nullptr;

}  // namespace

DeviceMemory* device_memory() { return in_use; }

void use_device_memory(DeviceMemory* memory) { in_use = memory; }

}  // namespace penstock::backend
