// SPDX-License-Identifier: Apache-2.0
// The kernels that this machine runs, for the memory model (model/memory/kernels.h).
#pragma once

#include "model/memory/kernels.h"

namespace penstock::nn {

model::KernelSetting kernel_setting(model::Precision precision, int threads);

}  // namespace penstock::nn
