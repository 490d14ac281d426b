// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <string>

#include "backend/device.h"
#include "base/error.h"

namespace penstock::train {
namespace {

// Messages between ranks, what leaves a device's memory, and the experts' order of tokens are the host's yet.
void require_of_card(const run::Run& run, int ranks) {
  const auto refuse = [](const std::string& asked, const std::string& instead) {
    throw InputError(asked + ": train does not do that on a card yet; use " + instead +
                     ", or train.device = \"cpu\"");
  };
  if (ranks > 1) refuse(std::to_string(ranks) + " ranks", "one");
  if (run.shape().experts > 1)
    refuse("model.experts = " + std::to_string(run.shape().experts), "model.experts = 1");
  if (run.offload > 0) refuse("memory.offload above 0", "memory.offload = 0");
}

}  // namespace

void require_device(const run::Run& run, int ranks) {
  const std::string& asked = run.options.train.device;
  const bool card = !backend::compute_device().is_cpu();
  require(card || asked != "cuda",
          "train.device = \"cuda\": this program computes on the CPU alone; ./dev build --gpu builds the one "
          "for cards, which penstock becomes when mpirun has not started it");
  require(!card || asked != "cpu", "train.device = \"cpu\": this program computes on a card; start penstock");
  if (!card) return;
  backend::require_device();
  require_of_card(run, ranks);
}

}  // namespace penstock::train
