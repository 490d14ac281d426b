// SPDX-License-Identifier: Apache-2.0
// Which kernels this machine takes, as the memory model asks (model/kernel_memory.h).
#pragma once

#include "model/kernel_memory.h"

namespace penstock::nn {

model::KernelSetting kernel_setting(model::Precision precision, int threads);

}  // namespace penstock::nn
