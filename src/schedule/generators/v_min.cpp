// SPDX-License-Identifier: Apache-2.0
// V-Min, Qi et al. 2024 (controllable memory): minimal activations, a third of 1F1B's. In flight until W:
// 2⌈(p+2)/3⌉ chunks. Idle at F = I = W: 4p-7 units if 3 divides p and m >= p, else 4p-5.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/squeeze.h"

namespace penstock::schedule {

Schedule v_min(const Request& request) {
  const int p = request.devices;
  const int pause = p % 3 == 0 ? 2 : 0;  // keeps the passes apart modulo 6
  std::vector<Block> blocks;
  for (int r = 0; r < p; ++r) {
    blocks.push_back({r, 2 * p - r - 1, 2 * p + pause + r, 4 * p + pause - r - 1});
  }
  return squeeze(request, blocks, 2 * ((p + 4) / 3));
}

}  // namespace penstock::schedule
