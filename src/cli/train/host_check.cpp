// SPDX-License-Identifier: Apache-2.0
#include "cli/train/host_check.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "base/whole.h"
#include "comm/launcher.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/replicas.h"
#include "run/resolve/choose.h"

namespace penstock::cli {
namespace {

// Bytes of masters and moments that one rank writes.
Bytes written_states(const run::Run& run, const model::MemoryPeaks& memory) {
  // Masters count in the optimizer's bytes, or are the weights.
  const bool masters = run.precision == model::Precision::BF16 || run.shards_weights();
  const Bytes states = memory.optimizer + (masters ? 0 : memory.optimizer / 2);
  return states / run::state_sharding_of(run, {}).copies;
}

// Two alternating in-memory copies of one rank's states.
Bytes copies_of_states(const run::Run& run, const model::MemoryPeaks& memory) {
  return run.options.train.buddy_every == 0 ? 0 : 2 * written_states(run, memory);
}

// Host memory in addition to the device's tensors: offloaded records, the staging copy of a checkpoint, and
// the copies of this rank's states.
Bytes beside_tensors(const run::Run& run, const model::MemoryPeaks& memory) {
  const run::TrainOptions& train = run.options.train;
  const Bytes staging = train.checkpoint_every == 0 || run.options.output.gather ? 0 : 1;
  return memory.host + staging * written_states(run, memory) + copies_of_states(run, memory);
}

// Sum over the `count` ranks that need most. `bytes_of` gives the bytes of each rank of a device.
template <class BytesOf>
Bytes of_fullest_ranks(const run::Run& run, int count, BytesOf&& bytes_of) {
  std::vector<Bytes> bytes;
  for (const model::MemoryPeaks& memory : run.predicted)
    bytes.insert(bytes.end(), run.mesh.ranks_per_stage(), bytes_of(memory));
  std::ranges::sort(bytes, std::greater());
  Bytes sum = 0;
  for (int i = 0; i < std::min(count, static_cast<int>(bytes.size())); ++i) sum += bytes[i];
  return sum;
}

// Copies that this host's ranks keep for ranks of other hosts: one rank's copies each, as long as there are
// enough ranks elsewhere (train::keepers_of). An underestimate if another host has more than half of all
// ranks, since the keepers of these then hold several ranks' copies; ranks per host are unknown at this
// point.
Bytes kept_for_others(const run::Run& run, int ranks) {
  const int others = static_cast<int>(run.mesh.world()) - ranks;
  return of_fullest_ranks(run, std::clamp(others, 0, ranks),
                          [&](const model::MemoryPeaks& memory) { return copies_of_states(run, memory); });
}

// For settings without a memory prediction yet.
Bytes needed_on_host(run::Run run, int ranks) {
  run.predicted = run::predict_memory(run, run::program_of(run));
  return bytes_on_host(run, ranks);
}

// Records that are no longer offloaded stay on the GPU: limits each device to an even share of the free GPU
// memory, or to the run's current need if that is more.
run::Run within_gpu(run::Run run, int ranks) {
  const std::optional<backend::Gpu> gpu = backend::gpu();
  if (!gpu || ranks == 0) return run;
  const Bytes fullest = run.predicted[run::fullest_device(run.predicted)].total();
  const Bytes room = std::max(fullest, gpu->free / ranks);
  run.memory_limit = std::min(room, run.memory_limit.value_or(room));
  return run;
}

void require_on_gpu(const run::Run& run, const backend::Gpu& gpu, int ranks, Bytes needed) {
  if (needed <= gpu.free) return;
  throw NoAnswer(counted(ranks, "rank") + " on one GPU (" + gpu.name + ") would need " + print_bytes(needed) +
                 " of its memory, but " + print_bytes(gpu.free) + " of " + print_bytes(gpu.total) +
                 " are free; " + run::settings_that_fit(run, gpu.free / ranks) +
                 "; train.memory_check = \"off\" starts it anyway");
}

}  // namespace

Bytes bytes_on_host(const run::Run& run, int ranks) {
  const bool tensors = backend::compute_device().is_cpu();
  const Bytes own = of_fullest_ranks(run, ranks, [&](const model::MemoryPeaks& memory) {
    return (tensors ? memory.total() : 0) + beside_tensors(run, memory);
  });
  return own + kept_for_others(run, ranks);
}

Bytes free_on_host(const profile::HostMemory& memory, Bytes copies) {
  return std::min(static_cast<Bytes>(memory.total), static_cast<Bytes>(memory.total - memory.used) + copies);
}

Bytes copies_on_host(const run::Run& run, int ranks) {
  const Bytes own = of_fullest_ranks(
      run, ranks, [&](const model::MemoryPeaks& memory) { return copies_of_states(run, memory); });
  return own + kept_for_others(run, ranks);
}

std::filesystem::path folder_of_copies(const run::TrainOptions& train) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(train.buddy_dir, error).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

std::optional<Bytes> free_for_copies(const run::TrainOptions& train, Bytes copies) {
  std::error_code error;
  std::filesystem::path folder = folder_of_copies(train);
  if (!std::filesystem::exists(folder, error)) folder = folder.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.capacity == 0) return {};
  const Bytes free = static_cast<Bytes>(space.available) + copies;
  return std::min(static_cast<Bytes>(space.capacity), free);
}

void require_room_for_copies(const run::Run& run, int ranks, std::optional<Bytes> free) {
  if (!free || run.options.train.memory_check == "off") return;
  const Bytes needed = copies_on_host(run, ranks);
  if (needed <= *free) return;
  throw NoAnswer("the copies of the " + counted(ranks, "rank") + " on this host (" + comm::host_name() +
                 ") would need " + print_bytes(needed) + " in train.buddy_dir = " +
                 json_quote(run.options.train.buddy_dir) + ", but " + print_bytes(*free) +
                 " are free there; give that file system more room, name another folder, or use "
                 "train.buddy_every = 0; train.memory_check = \"off\" starts it anyway");
}

void require_host_memory(const run::Run& run, int ranks, Bytes free, int on_gpu) {
  if (run.options.train.memory_check == "off") return;
  const Bytes needed = bytes_on_host(run, ranks);
  if (needed <= free) return;
  const auto needed_by = [ranks](const run::Run& other) { return needed_on_host(other, ranks); };
  throw NoAnswer("the " + counted(ranks, "rank") + " on this host (" + comm::host_name() + ") would need " +
                 print_bytes(needed) + ", but " + print_bytes(free) + " are free; " +
                 run::settings_that_fit(within_gpu(run, on_gpu), free, needed_by) +
                 "; train.memory_check = \"off\" starts it anyway");
}

void require_gpu_memory(const run::Run& run, int ranks) {
  const std::optional<backend::Gpu> gpu = backend::gpu();
  if (!gpu || run.options.train.memory_check == "off") return;
  require_on_gpu(run, *gpu, ranks, of_fullest_ranks(run, ranks, [](const model::MemoryPeaks& memory) {
                   return memory.total();
                 }));
}

Bytes bytes_on_gpu(const run::Run& run, int gpu, int gpus) {
  Bytes bytes = 0;
  for (int rank = gpu; rank < run.mesh.world(); rank += gpus)
    bytes += run.predicted[static_cast<std::size_t>(run.mesh.coordinates_of(rank).pipeline)].total();
  return bytes;
}

void require_gpu_of_threads(const run::Run& run) {
  if (run.options.train.memory_check == "off") return;
  const auto ranks = static_cast<int>(run.mesh.world());
  for (int turn = 0; turn < ranks; ++turn) {
    const std::optional<backend::Gpu> gpu = backend::gpu_of_turn(turn);
    if (!gpu || turn >= gpu->gpus) return;
    require_on_gpu(run, *gpu, ceil_div(ranks - turn, gpu->gpus), bytes_on_gpu(run, turn, gpu->gpus));
  }
}

}  // namespace penstock::cli
