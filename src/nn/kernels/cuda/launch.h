// SPDX-License-Identifier: Apache-2.0
// Launches the kernels of rows/.
#pragma once

#include <cstdint>

namespace penstock::nn::kernels::cuda {

// Computes rows 0..count-1 on the current stream. Asynchronous on a GPU, synchronous on a host (in tests).
// Only for the kernels in rows/instances.inc. Throws RunError if the launch fails.
template <class Rows>
void launch(const Rows& rows, std::int64_t count);

}  // namespace penstock::nn::kernels::cuda
