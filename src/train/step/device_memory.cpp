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

RunError out_of_device_memory(const run::Run& run, const backend::Ledger& ledger) {
  std::vector<std::string> held;
  for (int i = 0; i < backend::kCategories; ++i) {
    const auto category = static_cast<model::Category>(i);
    if (const Bytes bytes = ledger.live(category); bytes > 0)
      held.push_back(print_bytes(bytes) + " of " + std::string(model::name_of(category)));
  }
  const std::optional<backend::Card> card = backend::card();
  const Bytes room = card ? card->free + backend::cached_bytes() + ledger.live_total() : 0;
  run::Run within = run;
  within.memory_limit = room;
  return RunError("out of the card's memory: this rank holds " +
                  (held.empty() ? "nothing yet" : join(held, ", ")) + " and could have " + print_bytes(room) +
                  "; " + run::settings_that_fit(within));
}

}  // namespace penstock::train
