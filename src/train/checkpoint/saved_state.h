// SPDX-License-Identifier: Apache-2.0
// Sources of a resumed run's tensors: files that every rank sees, files that only rank 0 sees, or copies in
// the memory of hosts (host_copies.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/groups.h"
#include "files/safetensors.h"
#include "train/checkpoint/facts.h"

namespace penstock::train {

// Reads the whole tensors of a checkpoint one by one. Ranks that are threads may share one object.
class SavedState {
 public:
  virtual ~SavedState() = default;

  // Calls visit(place, whole tensor, or nullptr if this rank does not want it) for all tensors in the order
  // of the facts' files; the bytes live until the visit ends. Collective, with the same facts on all ranks.
  // Throws InputError naming the file and the tensor if it is missing or damaged.
  struct Place {
    const FileSums& file;
    const std::string& tensor;
    std::uint64_t sum;  // word sum
  };
  using Wants = std::function<bool(const std::string& tensor)>;
  using Visit = std::function<void(const Place&, const files::StoredTensor*)>;
  virtual void for_tensors(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const = 0;

  // Frees the tensors' memory. Call when all ranks that share this object have loaded them; may be called
  // again.
  virtual void let_go() {}

  // For messages: the checkpoint's directory, or a description.
  virtual std::string name() const = 0;
};

// `checkpoint`: its directory, which every rank sees.
std::unique_ptr<SavedState> state_in_files(std::string checkpoint);

// The same if only rank 0 sees it: rank 0 broadcasts every tensor.
std::unique_ptr<SavedState> state_in_files_of_first(std::string checkpoint, comm::World world);

}  // namespace penstock::train
