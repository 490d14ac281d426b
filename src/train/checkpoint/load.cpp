// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/load.h"

#include <map>

#include "base/error.h"
#include "files/checksum.h"
#include "files/safetensors.h"
#include "train/checkpoint/layout.h"
#include "train/checkpoint/weights_file.h"

namespace penstock::train {
namespace {

// The tensors of a checkpoint by name; its files are opened when they are needed.
class StoredState {
 public:
  StoredState(std::string checkpoint, const CheckpointFacts& facts) : checkpoint_(std::move(checkpoint)) {
    for (const FileSums& sums : facts.files) {
      for (const auto& [tensor, sum] : sums.tensors) places_[tensor] = {sums.file, sum};
    }
  }

  // The parameter's part of its weight or of a moment.
  void read(const nn::Parameter& parameter, Kept kept, const at::Tensor& tensor) {
    const std::string name = kept_name(stored_name(parameter), kept);
    const auto place = places_.find(name);
    if (place == places_.end()) {
      throw InputError(checkpoint_ + "/" + kCheckpointFacts + ": names no tensor \"" + name + "\"");
    }
    const std::string path = checkpoint_ + "/" + place->second.file;
    const files::StoredTensor* stored = open(path).find(name);
    if (stored && files::word_sum(stored->bytes) != place->second.sum) {
      throw InputError(path + ": tensor \"" + name + "\" is damaged");
    }
    read_part(stored, name, path, parameter, tensor);
  }

 private:
  struct Place {
    std::string file;
    std::uint64_t sum = 0;
  };

  const files::Safetensors& open(const std::string& path) {
    auto found = open_.find(path);
    if (found == open_.end()) found = open_.emplace(path, files::Safetensors(path)).first;
    return found->second;
  }

  std::string checkpoint_;
  std::map<std::string, Place> places_;
  std::map<std::string, files::Safetensors> open_;
};

}  // namespace

void load_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, Trainer& trainer) {
  StoredState stored(checkpoint, facts);
  for (Optimizer::Entry& entry : trainer.optimizer().entries()) {
    stored.read(*entry.parameter, Kept::Weight, entry.parameter->master);
    stored.read(*entry.parameter, Kept::FirstMoment, entry.first_moment);
    stored.read(*entry.parameter, Kept::SecondMoment, entry.second_moment);
  }
  trainer.weights_from_masters();
  trainer.optimizer().set_updates(facts.updates);
}

}  // namespace penstock::train
