// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "run/context.h"
#include "run/layer_split.h"
#include "run/resolve/choose.h"
#include "run/resolve/shortened.h"

namespace penstock::run {
namespace {

struct ContextChoice {
  std::string mode;
  Seconds seconds = 0;
};

// Splits the layers again: their time depends on the mode, and with it the weight of the pipeline's ends.
Run with_mode(Run run, const std::string& mode) {
  run.options.parallel.cp_mode = mode;
  split_layers(run);
  return run;
}

// Only "gather" keeps more than the others.
bool does_not_fit(const Run& run, const std::string& mode) {
  return mode == "gather" && !fits(with_mode(run, mode));
}

std::string compared_modes(const Run& run, const std::vector<ContextChoice>& candidates,
                           const std::string& passed_over) {
  std::vector<std::string> words;
  for (const ContextChoice& candidate : candidates) {
    words.push_back(candidate.mode + " " + print_seconds(candidate.seconds) + " and " +
                    print_bytes(context_bytes(run, candidate.mode)));
  }
  if (!passed_over.empty()) words.push_back(passed_over + " does not fit in memory.limit");
  return join(words, ", ") + " (a simulated step; what a rank receives for a layer and slice)";
}

}  // namespace

void choose_context(Run& run) {
  if (run.mesh.context == 1) return;
  const Run simulated = shortened(run);
  std::vector<ContextChoice> candidates;
  std::string passed_over;
  for (const std::string& mode : context_modes(run.options)) {
    if (does_not_fit(run, mode)) {
      passed_over = mode;
    } else {
      candidates.push_back({mode, simulated_seconds(with_mode(simulated, mode))});
    }
  }
  const Seconds fastest = std::ranges::min(candidates, {}, &ContextChoice::seconds).seconds;
  const auto chosen = std::ranges::find_if(
      candidates, [&](const ContextChoice& candidate) { return kWorthwhile * candidate.seconds <= fastest; });
  run.add_note(Topic::Context,
               chosen->mode + ": " +
                   (chosen->seconds == fastest ? "the fastest: " : "within 1 % of the fastest: ") +
                   compared_modes(run, candidates, passed_over));
  run = with_mode(std::move(run), chosen->mode);
}

}  // namespace penstock::run
