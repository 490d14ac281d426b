// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <string>

#include "backend/device.h"
#include "base/error.h"

namespace penstock::train {

void require_device(const run::Run& run) {
  const std::string& asked = run.options.train.device;
  const bool card = !backend::compute_device().is_cpu();
  require(card || asked != "cuda",
          "train.device = \"cuda\": this program computes on the CPU alone; ./dev build --gpu builds the one "
          "for cards, which penstock becomes");
  require(!card || asked != "cpu", "train.device = \"cpu\": this program computes on a card; start penstock");
  if (!card) return;
  backend::require_device(run.options.numerics.repeatable);
  require(
      run.offload == 0 || run.offload_to == run::OffloadTo::Host,
      "memory.offload_to = \"disk\": a card's records leave for the host's memory alone; use \"host\", or "
      "train.device = \"cpu\"");
}

}  // namespace penstock::train
