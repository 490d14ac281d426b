// SPDX-License-Identifier: Apache-2.0
#include "train/step/device_memory.h"

#include <optional>
#include <string>
#include <vector>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/text.h"
#include "run/resolve/choose.h"

namespace penstock::train {

std::string settings_within(const run::Run& run, Bytes room) {
  const Bytes predicted = run::greatest_total(run);
  if (predicted > room) return run::settings_that_fit(run, room);
  const Bytes less = predicted - predicted / 10;  // how much was missing is not known
  return "the prediction of " + print_bytes(predicted) + " was too low; in a tenth less, " +
         print_bytes(less) + ", " + run::settings_that_fit(run, less);
}

RunError out_of_device_memory(const run::Run& run, const backend::Ledger& ledger) {
  std::vector<std::string> held;
  for (int i = 0; i < model::kTensorCategories; ++i) {
    const auto category = static_cast<model::Category>(i);
    if (const Bytes bytes = ledger.live(category); bytes > 0)
      held.push_back(print_bytes(bytes) + " of " + std::string(model::name_of(category)));
  }
  const std::optional<backend::Gpu> gpu = backend::gpu();
  const Bytes room = gpu ? gpu->free + backend::cached_bytes() + ledger.live_total() : 0;
  return RunError("out of the GPU's memory: this rank holds " +
                  (held.empty() ? "nothing yet" : join(held, ", ")) + " and could have " + print_bytes(room) +
                  "; " + settings_within(run, room));
}

}  // namespace penstock::train
