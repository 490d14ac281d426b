// SPDX-License-Identifier: Apache-2.0
#include "cli/train/host_check.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/launcher.h"
#include "run/replicas.h"
#include "run/resolve/choose.h"

namespace penstock::cli {
namespace {

// Masters and moments that one rank writes.
Bytes written_states(const run::Run& run, const model::DeviceMemory& memory) {
  // Masters are among the optimizer's bytes, or the weights.
  const bool masters =
      run.precision == model::Precision::BF16 || run.states == schedule::ReplicaStates::Passing;
  const Bytes states = memory.optimizer + (masters ? 0 : memory.optimizer / 2);
  return states / run::sharing_of(run, {}).copies;
}

// Copies in memory of one rank's states, which alternate.
Bytes copies_of_states(const run::Run& run, const model::DeviceMemory& memory) {
  return run.options.train.buddy_every == 0 ? 0 : 2 * written_states(run, memory);
}

// Besides the device's tensors: records in host memory, the staging copy of a checkpoint, and the copies of
// this rank's states.
Bytes beside_tensors(const run::Run& run, const model::DeviceMemory& memory) {
  const run::TrainOptions& train = run.options.train;
  const Bytes staging = train.checkpoint_every == 0 || run.options.output.gather ? 0 : 1;
  return memory.host + staging * written_states(run, memory) + copies_of_states(run, memory);
}

// The sum over the `count` ranks that need most, of what each device's ranks do.
template <class BytesOf>
Bytes of_fullest_ranks(const run::Run& run, int count, BytesOf&& bytes_of) {
  std::vector<Bytes> bytes;
  for (const model::DeviceMemory& memory : run.predicted)
    bytes.insert(bytes.end(), run.mesh.ranks_per_stage(), bytes_of(memory));
  std::ranges::sort(bytes, std::greater());
  Bytes sum = 0;
  for (int i = 0; i < std::min(count, static_cast<int>(bytes.size())); ++i) sum += bytes[i];
  return sum;
}

// Copies that this host's ranks keep for ranks of other hosts: each rank those of one, as long as there are
// enough ranks elsewhere (train::keepers_of). An underestimate where one of the other hosts has more than
// half of all ranks, each of whose keepers then has the copies of several: how many ranks every host has is
// not known before the run starts.
Bytes kept_for_others(const run::Run& run, int ranks) {
  const int others = static_cast<int>(run.mesh.world()) - ranks;
  return of_fullest_ranks(run, std::clamp(others, 0, ranks),
                          [&](const model::DeviceMemory& memory) { return copies_of_states(run, memory); });
}

Bytes bytes_of_ranks(const run::Run& run, int ranks, bool tensors) {
  const Bytes own = of_fullest_ranks(run, ranks, [&](const model::DeviceMemory& memory) {
    return (tensors ? memory.total() : 0) + beside_tensors(run, memory);
  });
  return own + kept_for_others(run, ranks);
}

}  // namespace

Bytes bytes_on_host(const run::Run& run, int ranks) {
  return bytes_of_ranks(run, ranks, backend::compute_device().is_cpu());
}

Bytes free_on_host(const profile::HostMemory& memory, Bytes copies) {
  return std::min(static_cast<Bytes>(memory.total), static_cast<Bytes>(memory.total - memory.used) + copies);
}

void require_host_memory(const run::Run& run, int ranks, Bytes free) {
  if (run.options.train.memory_check == "off") return;
  const Bytes needed = bytes_on_host(run, ranks);
  if (needed <= free) return;
  run::Run within = run;
  within.memory_limit = std::max<Bytes>(0, free - bytes_of_ranks(run, ranks, false)) / ranks;
  throw NoAnswer("the " + counted(ranks, "rank") + " on this host (" + comm::host_name() + ") would need " +
                 print_bytes(needed) + ", but " + print_bytes(free) + " are free; " +
                 run::settings_that_fit(within) + "; train.memory_check = \"off\" starts it all the same");
}

void require_card_memory(const run::Run& run, int ranks) {
  const std::optional<backend::Card> card = backend::card();
  if (!card || run.options.train.memory_check == "off") return;
  const Bytes needed =
      of_fullest_ranks(run, ranks, [](const model::DeviceMemory& memory) { return memory.total(); });
  if (needed <= card->free) return;
  run::Run within = run;
  within.memory_limit = card->free / ranks;
  throw NoAnswer(counted(ranks, "rank") + " on one card (" + card->name + ") would need " +
                 print_bytes(needed) + " of its memory, but " + print_bytes(card->free) + " of " +
                 print_bytes(card->total) + " are free; " + run::settings_that_fit(within) +
                 "; train.memory_check = \"off\" starts it all the same");
}

}  // namespace penstock::cli
