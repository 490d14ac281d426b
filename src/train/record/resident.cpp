// SPDX-License-Identifier: Apache-2.0
#include "train/record/resident.h"

#include <malloc.h>

#include <array>
#include <fstream>
#include <span>
#include <string>

#include "comm/launcher.h"
#include "nn/memory/allocator.h"

namespace penstock::train {
namespace {

bool one_process() { return !comm::launched_by_mpi(); }

// Memory that stays mapped between steps for reuse: our large blocks and malloc's small ones. The address
// sanitizer replaces malloc, whose own account is not even set up then.
Bytes free_for_reuse() {
#ifdef __SANITIZE_ADDRESS__
  return nn::cached_bytes();
#else
  return nn::cached_bytes() + static_cast<Bytes>(mallinfo2().fordblks);
#endif
}

}  // namespace

Resident resident_memory() {
  Resident resident;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    Bytes* wanted = key == "VmRSS:" ? &resident.now : key == "VmHWM:" ? &resident.peak : nullptr;
    if (wanted && status >> *wanted) *wanted *= KiB;
    status.ignore(1 << 20, '\n');
  }
  return resident;
}

void ResidentAccount::note_step(Bytes host) {
  if (libraries_ != 0) return;
  auto live = static_cast<double>(ledger_.live_total() + host);
  if (one_process()) world_->all_reduce(&live, 1, comm::Type::F64, comm::Reduction::Sum);
  world_->barrier();  // the process's ranks are idle while its resident set is read
  libraries_ = resident_memory().now - static_cast<Bytes>(live) - free_for_reuse();
  world_->barrier();
}

std::vector<ResidentSummary> ResidentAccount::gather(const run::Run& run, Bytes checkpoint_copy) const {
  const std::array<std::int64_t, 4> mine{libraries_, ledger_.peak_total(), checkpoint_copy,
                                         resident_memory().peak};
  std::vector<std::array<std::int64_t, 4>> all(static_cast<std::size_t>(world_->size()));
  world_->all_gather(comm::bytes_of(mine), std::as_writable_bytes(std::span(all)));
  std::vector<ResidentSummary> processes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& [libraries, tensors, copy_of_rank, resident] = all[rank];
    const int device = run.mesh.coordinates_of(static_cast<std::int64_t>(rank)).pipeline;
    if (rank == 0 || !one_process())
      processes.push_back({.first_device = device, .libraries = libraries, .measured = resident});
    processes.back().tensors += tensors;
    processes.back().checkpoint_copy += copy_of_rank;
    processes.back().predicted_tensors += run.predicted[static_cast<std::size_t>(device)].total();
    processes.back().predicted_host += run.predicted[static_cast<std::size_t>(device)].host;
  }
  return processes;
}

}  // namespace penstock::train
