// SPDX-License-Identifier: Apache-2.0
// Starts the kernels of rows/.
#pragma once

#include <cstdint>

namespace penstock::nn::kernels::cuda {

// Computes rows 0..count-1 on the current stream and returns before they are done; on a host, in tests,
// after. For the kernels of rows/instances.h. A card that refuses is a RunError.
template <class Rows>
void launch(const Rows& rows, std::int64_t count);

}  // namespace penstock::nn::kernels::cuda
