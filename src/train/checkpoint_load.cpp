// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_load.h"

#include <map>

#include "base/error.h"
#include "files/checksum.h"
#include "files/safetensors.h"
#include "train/checkpoint_layout.h"
#include "train/weights_file.h"

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

  void read(const std::string& name, const at::Tensor& tensor) {
    const auto place = places_.find(name);
    if (place == places_.end()) {
      throw InputError(checkpoint_ + "/" + kCheckpointFacts + ": names no tensor \"" + name + "\"");
    }
    const std::string path = checkpoint_ + "/" + place->second.file;
    const files::StoredTensor* stored = open(path).find(name);
    if (stored && files::checksum(stored->bytes) != place->second.sum) {
      throw InputError(path + ": tensor \"" + name + "\" is damaged");
    }
    read_tensor(stored, name, path, tensor);
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
    const std::string name = stored_name(*entry.parameter);
    stored.read(name, entry.parameter->master);
    stored.read(kept_name(name, Kept::FirstMoment), entry.first_moment);
    stored.read(kept_name(name, Kept::SecondMoment), entry.second_moment);
  }
  for (auto& [number, stage] : trainer.stages()) stage.weights_from_masters();
  trainer.optimizer().set_updates(facts.updates);
}

}  // namespace penstock::train
