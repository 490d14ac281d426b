// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_load.h"

#include <ATen/ops/empty.h>

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

// This rank's rows of a whole matrix; padding stays zero.
void read_shard(StoredState& stored, const std::string& name, const nn::Parameter& shard, std::int64_t vocab,
                const at::Tensor& tensor) {
  const at::Tensor whole = at::empty({vocab, tensor.size(1)}, tensor.options());
  stored.read(name, whole);
  shard.unpadded(tensor).copy_(whole.narrow(0, shard.first_row, shard.own_rows));
}

}  // namespace

void load_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, Trainer& trainer) {
  StoredState stored(checkpoint, facts);
  for (Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const std::string name = stored_name(*entry.parameter);
    const auto read = [&](Kept kept, const at::Tensor& tensor) {
      if (!entry.parameter->is_shard()) return stored.read(kept_name(name, kept), tensor);
      read_shard(stored, kept_name(name, kept), *entry.parameter, trainer.vocabulary()->options().shape.vocab,
                 tensor);
    };
    read(Kept::Weight, entry.parameter->master);
    read(Kept::FirstMoment, entry.first_moment);
    read(Kept::SecondMoment, entry.second_moment);
  }
  trainer.weights_from_masters();
  trainer.optimizer().set_updates(facts.updates);
}

}  // namespace penstock::train
