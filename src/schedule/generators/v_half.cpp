// SPDX-License-Identifier: Apache-2.0
// V-Half, Qi et al. 2024 (controllable memory): half of 1F1B's activations. In flight until W: 2(⌊p/2⌋+1)
// chunks. Idle at F = I = W, for m >= p: 3p-7 units (even p >= 4), 3p-4 (odd p), against 6(p-1) for 1F1B.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/squeeze.h"

namespace penstock::schedule {

Schedule v_half(const Request& request) {
  const int p = request.devices;
  const int pause = p % 2 == 0 ? 3 : 0;  // keeps the passes of even p apart modulo 6
  std::vector<Block> blocks;
  for (int r = 0; r < p; ++r) {
    blocks.push_back({2 * r, 3 * p - r - 2, 3 * p + pause + 2 * r - 1, 6 * p + pause - r - 2});
  }
  return squeeze(request, blocks, 2 * (p / 2 + 1));
}

}  // namespace penstock::schedule
