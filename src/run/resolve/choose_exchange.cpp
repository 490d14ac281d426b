// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "run/exchange.h"
#include "run/layer_split.h"
#include "run/resolve/choose.h"
#include "run/resolve/shortened.h"

namespace penstock::run {
namespace {

using schedule::ExchangeMode;

// Exchange needs stages of equal layers, so the split may change too.
Run with_exchange(Run run, ExchangeMode mode) {
  run.exchange = mode;
  split_layers(run);
  return run;
}

Seconds seconds_with(const Run& run, ExchangeMode mode) {
  return simulated_seconds(with_exchange(run, mode));
}

void take(Run& run, ExchangeMode mode, const std::string& why) {
  run = with_exchange(std::move(run), mode);
  run.options.schedule.exchange = name_of(mode);
  run.add_note(Topic::Exchange, run.options.schedule.exchange + ": " + why);
}

}  // namespace

std::string why_no_exchange(const Run& run) {
  if (run.schedule.device_count() == 1) return "there is one device";
  try {
    const Run paired = with_exchange(run, ExchangeMode::Paired);
    check_exchange(paired);
    require_exchangeable(paired);
  } catch (const InputError& reason) {
    return reason.what();
  }
  return {};
}

void choose_exchange(Run& run) {
  if (run.options.schedule.exchange != "auto") return;
  if (const std::string reason = why_no_exchange(run); !reason.empty())
    return take(run, ExchangeMode::Off, reason);
  const Run simulated = shortened(run);
  const Seconds off = seconds_with(simulated, ExchangeMode::Off),
                paired = seconds_with(simulated, ExchangeMode::Paired),
                levelled = seconds_with(simulated, ExchangeMode::Levelled);
  const std::string seconds = print_seconds(off) + " without, " + print_seconds(paired) + " paired, " +
                              print_seconds(levelled) + " levelled, simulated for " +
                              std::to_string(simulated.schedule.micro_batches()) + " micro-batches";
  if (std::min(paired, levelled) >= kWorthwhile * off)
    return take(run, ExchangeMode::Off, "it gains less than 1 %: " + seconds);
  Run chosen = run;
  take(chosen, paired <= levelled ? ExchangeMode::Paired : ExchangeMode::Levelled, "the fastest: " + seconds);
  if (!fits(chosen))
    return take(run, ExchangeMode::Off, "with its messages the run does not fit in memory.limit: " + seconds);
  run = std::move(chosen);
}

}  // namespace penstock::run
