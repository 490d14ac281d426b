// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/load.h"

#include <map>

#include "base/error.h"
#include "train/checkpoint/layout.h"
#include "train/checkpoint/weights_file.h"

namespace penstock::train {
namespace {

// A parameter's part that is set from a stored tensor.
struct Wanted {
  const nn::Parameter* parameter = nullptr;
  at::Tensor values;
  bool found = false;
};
using WantedByName = std::multimap<std::string, Wanted>;  // both sides of tied embeddings want one tensor

WantedByName wanted_by(Trainer& trainer) {
  WantedByName wanted;
  for (const Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const nn::Parameter& parameter = *entry.parameter;
    const std::string name = stored_name(parameter);
    wanted.emplace(kept_name(name, Kept::Weight), Wanted{&parameter, parameter.master});
    wanted.emplace(kept_name(name, Kept::FirstMoment), Wanted{&parameter, entry.first_moment});
    wanted.emplace(kept_name(name, Kept::SecondMoment), Wanted{&parameter, entry.second_moment});
  }
  return wanted;
}

}  // namespace

void load_state(SavedState& state, const CheckpointFacts& facts, Trainer& trainer,
                const std::function<void()>& after_tensor) {
  WantedByName wanted = wanted_by(trainer);
  const auto wants = [&](const std::string& tensor) { return wanted.contains(tensor); };
  state.for_tensors(facts, wants, [&](const SavedState::Place& place, const files::StoredTensor* stored) {
    const auto [first, last] = wanted.equal_range(place.tensor);
    for (auto part = first; part != last; ++part) {
      read_part(stored, place.tensor, state.name() + "/" + place.file.file, *part->second.parameter,
                part->second.values);
      part->second.found = true;
    }
    if (after_tensor) after_tensor();
  });
  for (const auto& [name, part] : wanted) {
    if (!part.found)
      throw InputError(state.name() + "/" + kCheckpointFacts + ": names no tensor \"" + name + "\"");
  }
  trainer.weights_from_masters();
  trainer.optimizer().set_updates(facts.updates);
}

void load_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, Trainer& trainer) {
  load_state(*state_in_files(checkpoint), facts, trainer);
}

}  // namespace penstock::train
