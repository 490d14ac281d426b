// SPDX-License-Identifier: Apache-2.0
// Counterpart of gpu/launch.cu on a host: tests check the arithmetic of the GPU's kernels without a GPU.
#include <vector>

#include "nn/kernels/cuda/launch.h"
#include "nn/kernels/cuda/rows/embedding.h"
#include "nn/kernels/cuda/rows/gate.h"
#include "nn/kernels/cuda/rows/heads.h"
#include "nn/kernels/cuda/rows/loss.h"
#include "nn/kernels/cuda/rows/norm.h"
#include "nn/kernels/cuda/rows/squares.h"
#include "nn/kernels/cuda/rows/sums.h"

namespace penstock::nn::kernels::cuda {

template <class Rows>
void launch(const Rows& rows, std::int64_t count) {
  // Rows share the scratch memory: each finds leftovers of an earlier one.
  std::vector<double> scratch((static_cast<std::size_t>(rows.scratch_bytes()) + 7) / 8, -1e30);
  for (std::int64_t row = 0; row < count; ++row) {
    rows(Lanes<Rows::kLanes>(reinterpret_cast<unsigned char*>(scratch.data())), row);
  }
}

#include "nn/kernels/cuda/rows/instances.inc"

}  // namespace penstock::nn::kernels::cuda
