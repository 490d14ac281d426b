// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <string>
#include <utility>

#include "backend/device.h"
#include "base/error.h"
#include "base/text.h"

namespace penstock::train {
namespace {

// Stages exchange messages through the host's memory. Collectives, what leaves a device's memory, and the
// experts' order of tokens are the host's yet.
void require_of_card(const run::Run& run) {
  const auto refuse = [](const std::string& asked, const std::string& instead) {
    throw InputError(asked + ": train does not do that on a card yet; use " + instead +
                     ", or train.device = \"cpu\"");
  };
  for (const auto& [name, size] :
       {std::pair{"dp", run.mesh.data}, {"tp", run.mesh.tensor}, {"cp", run.mesh.context}})
    if (size > 1) refuse("parallel." + std::string(name) + " = " + std::to_string(size), "1");
  if (run.sharded_vocabulary()) refuse("schedule.vocabulary_parallel = true", "false");
  if (run.exchange != schedule::ExchangeMode::Off)
    refuse("schedule.exchange = " + json_quote(run.options.schedule.exchange), "\"off\"");
  if (run.shape().experts > 1)
    refuse("model.experts = " + std::to_string(run.shape().experts), "model.experts = 1");
  if (run.offload > 0) refuse("memory.offload above 0", "memory.offload = 0");
}

}  // namespace

void require_device(const run::Run& run) {
  const std::string& asked = run.options.train.device;
  const bool card = !backend::compute_device().is_cpu();
  require(card || asked != "cuda",
          "train.device = \"cuda\": this program computes on the CPU alone; ./dev build --gpu builds the one "
          "for cards, which penstock becomes when mpirun has not started it");
  require(!card || asked != "cpu", "train.device = \"cpu\": this program computes on a card; start penstock");
  if (!card) return;
  backend::require_device();
  require_of_card(run);
}

}  // namespace penstock::train
