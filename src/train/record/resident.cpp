// SPDX-License-Identifier: Apache-2.0
#include "train/record/resident.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <string>

#include "backend/device.h"
#include "backend/host_memory.h"
#include "backend/memory.h"
#include "comm/launcher.h"
#include "train/record/program_pages.h"

namespace penstock::train {
namespace {

bool tensors_on_host() { return backend::compute_device().is_cpu(); }

bool one_process() { return !comm::launched_by_mpi(); }

std::int64_t tokens_of_slice(const run::Run& run) {
  return run.slices.front().front().length * run.sequences();
}

// Memory that steps add: pages of code, in bf16 also products' packing buffers and generated kernels.
// Measured: in f32 10 to 22 MiB (models of up to 110 M parameters); in bf16 14 to 27, of which 10 grow with
// the elements of a slice's hidden states, up to 16 K of them.
Bytes added_by_steps(const run::Run& run) {
  if (run.precision != model::Precision::BF16) return 14 * MiB;
  constexpr std::int64_t kAll = 16 * 1024;
  return 14 * MiB + 10 * MiB * std::min(tokens_of_slice(run) * run.shape().hidden, kAll) / kAll;
}

// Runs one product in f32, of at most 2,048 × 512 by 512 × 8,192. It gives this thread and its helpers the
// buffers of packed operands that the library keeps, a few MiB per thread; larger products need no more. A
// product that needs larger buffers leaves the smaller ones in place, so this comes before others.
void fill_product_buffers(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  rows = std::min<std::int64_t>(rows, 2048);
  inner = std::min<std::int64_t>(inner, 512);
  columns = std::min<std::int64_t>(columns, 8192);
  // Returns to the system at once; tensors and malloc would keep the memory in their caches.
  const auto room = [](std::int64_t numbers) {
    return backend::HostMemory(numbers * static_cast<Bytes>(sizeof(float)), "the first product");
  };
  const backend::HostMemory left = room(rows * inner), right = room(inner * columns),
                            product = room(rows * columns);
  const auto matrix = [](const backend::HostMemory& memory, std::int64_t height, std::int64_t width) {
    return at::from_blob(memory.bytes().data(), {height, width}, at::dtype(at::kFloat));
  };
  at::Tensor result = matrix(product, rows, columns);
  at::mm_out(result, matrix(left, rows, inner), matrix(right, inner, columns));
}

// Memory that stays mapped between steps for reuse: our large blocks and malloc's small ones. The address
// sanitizer replaces malloc, whose statistics are not even set up then.
Bytes free_for_reuse() {
  const Bytes cached = tensors_on_host() ? backend::cached_bytes() : 0;
#ifdef __SANITIZE_ADDRESS__
  return cached;
#else
  return cached + static_cast<Bytes>(mallinfo2().fordblks);
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

ResidentAccount::ResidentAccount(const run::Run& run, const backend::Ledger& ledger, comm::World world)
    : run_(run), ledger_(ledger), world_(world) {
  if (run.precision != model::Precision::F32 || !tensors_on_host()) return;
  const model::Shape& shape = run.shape();
  const std::int64_t tokens = tokens_of_slice(run);
  fill_product_buffers(tokens, std::max(shape.hidden, tokens), std::max(shape.ffn, shape.vocab));
}

Bytes ResidentAccount::beside_tensors(Bytes host) const {
  auto live = static_cast<double>((tensors_on_host() ? ledger_.live_total() : 0) + host);
  if (one_process()) world_->all_reduce(&live, 1, comm::Type::F64, comm::Reduction::Sum);
  world_->barrier();  // the process's ranks are idle while its resident set is read
  const Bytes beside = resident_memory().now - static_cast<Bytes>(live) - free_for_reuse();
  world_->barrier();
  return beside;
}

void ResidentAccount::release_pages() const {
  if (!one_process() || world_->rank() == 0) release_program_pages();
}

void ResidentAccount::begin(Bytes pinned) {
  at_start_ = resident_memory().peak;
  release_pages();
  predicted_libraries_ = beside_tensors(pinned) + added_by_steps(run_);
}

void ResidentAccount::note_step(Bytes host) {
  constexpr int kSettled = 2;
  if (steps_ == kSettled) return;
  libraries_ = beside_tensors(host);
  if (++steps_ < kSettled) release_pages();  // pages that only a first step needs
}

std::vector<ResidentSummary> ResidentAccount::gather(Bytes checkpoint_copy, Bytes state_copies) const {
  const std::array<std::int64_t, 7> mine{at_start_,
                                         predicted_libraries_,
                                         libraries_,
                                         tensors_on_host() ? ledger_.peak_total() : 0,
                                         checkpoint_copy,
                                         state_copies,
                                         resident_memory().peak};
  std::vector<std::array<std::int64_t, 7>> all(static_cast<std::size_t>(world_->size()));
  world_->all_gather(comm::bytes_of(mine), std::as_writable_bytes(std::span(all)));
  std::vector<ResidentSummary> processes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& [at_start, predicted, libraries, tensors, copy_of_rank, states, resident] = all[rank];
    const int device = run_.mesh.coordinates_of(static_cast<std::int64_t>(rank)).pipeline;
    if (rank == 0 || !one_process())
      processes.push_back({.first_device = device,
                           .at_start = at_start,
                           .predicted_libraries = predicted,
                           .libraries = libraries,
                           .measured = resident});
    processes.back().tensors += tensors;
    processes.back().checkpoint_copy += copy_of_rank;
    processes.back().state_copies += states;
    if (tensors_on_host())
      processes.back().predicted_tensors += run_.predicted[static_cast<std::size_t>(device)].total();
    processes.back().predicted_host += run_.predicted[static_cast<std::size_t>(device)].host;
  }
  return processes;
}

}  // namespace penstock::train
