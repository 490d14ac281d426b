// SPDX-License-Identifier: Apache-2.0
// Where a resumed run's tensors come from: files that every rank sees, or only rank 0; or copies in the
// memory of hosts (host_copies.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/groups.h"
#include "files/safetensors.h"
#include "train/checkpoint/facts.h"

namespace penstock::train {

// The whole tensors of a checkpoint, one after another. Ranks that are threads may share one.
class SavedState {
 public:
  virtual ~SavedState() = default;

  // All tensors in the order of the facts' files: visit(place, whole tensor, or nullptr where this rank does
  // not want it), whose bytes live until the visit ends. Collective, with the same facts on all ranks. Throws
  // InputError naming the file and the tensor: missing or damaged.
  struct Place {
    const FileSums& file;
    const std::string& tensor;
    std::uint64_t sum;  // of words
  };
  using Wants = std::function<bool(const std::string& tensor)>;
  using Visit = std::function<void(const Place&, const files::StoredTensor*)>;
  virtual void for_tensors(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const = 0;

  // Frees the memory that the tensors are in, which nobody asks for any more. When all ranks that share this
  // have them; any number of calls.
  virtual void let_go() {}

  // For messages: the checkpoint's directory, or words.
  virtual std::string name() const = 0;
};

// `checkpoint`: its directory, which every rank sees.
std::unique_ptr<SavedState> state_in_files(std::string checkpoint);

// The same where only rank 0 sees it: it broadcasts every tensor.
std::unique_ptr<SavedState> state_in_files_of_first(std::string checkpoint, comm::World world);

}  // namespace penstock::train
