// SPDX-License-Identifier: Apache-2.0
#include "cli/train/host_check.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "comm/launcher.h"
#include "run/lowering.h"
#include "run/memory.h"
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

// With settings that nothing was predicted for yet.
Bytes needed_on_host(run::Run run, int ranks) {
  run.predicted = run::predict_memory(run, run::program_of(run));
  return bytes_on_host(run, ranks);
}

// Records that no longer leave stay on the card: no device may need more than an even share of it, or than in
// the run as it is.
run::Run within_card(run::Run run, int ranks) {
  const std::optional<backend::Card> card = backend::card();
  if (!card || ranks == 0) return run;
  const Bytes fullest = run.predicted[run::fullest_device(run.predicted)].total();
  const Bytes room = std::max(fullest, card->free / ranks);
  run.memory_limit = std::min(room, run.memory_limit.value_or(room));
  return run;
}

void require_on_card(const run::Run& run, const backend::Card& card, int ranks, Bytes needed) {
  if (needed <= card.free) return;
  throw NoAnswer(counted(ranks, "rank") + " on one card (" + card.name + ") would need " +
                 print_bytes(needed) + " of its memory, but " + print_bytes(card.free) + " of " +
                 print_bytes(card.total) + " are free; " + run::settings_that_fit(run, card.free / ranks) +
                 "; train.memory_check = \"off\" starts it all the same");
}

}  // namespace

Bytes bytes_on_host(const run::Run& run, int ranks) {
  const bool tensors = backend::compute_device().is_cpu();
  const Bytes own = of_fullest_ranks(run, ranks, [&](const model::DeviceMemory& memory) {
    return (tensors ? memory.total() : 0) + beside_tensors(run, memory);
  });
  return own + kept_for_others(run, ranks);
}

Bytes free_on_host(const profile::HostMemory& memory, Bytes copies) {
  return std::min(static_cast<Bytes>(memory.total), static_cast<Bytes>(memory.total - memory.used) + copies);
}

void require_host_memory(const run::Run& run, int ranks, Bytes free, int on_card) {
  if (run.options.train.memory_check == "off") return;
  const Bytes needed = bytes_on_host(run, ranks);
  if (needed <= free) return;
  const auto needed_by = [ranks](const run::Run& other) { return needed_on_host(other, ranks); };
  throw NoAnswer("the " + counted(ranks, "rank") + " on this host (" + comm::host_name() + ") would need " +
                 print_bytes(needed) + ", but " + print_bytes(free) + " are free; " +
                 run::settings_that_fit(within_card(run, on_card), free, needed_by) +
                 "; train.memory_check = \"off\" starts it all the same");
}

void require_card_memory(const run::Run& run, int ranks) {
  const std::optional<backend::Card> card = backend::card();
  if (!card || run.options.train.memory_check == "off") return;
  require_on_card(run, *card, ranks, of_fullest_ranks(run, ranks, [](const model::DeviceMemory& memory) {
                    return memory.total();
                  }));
}

Bytes bytes_on_card(const run::Run& run, int card, int cards) {
  Bytes bytes = 0;
  for (int rank = card; rank < run.mesh.world(); rank += cards)
    bytes += run.predicted[static_cast<std::size_t>(run.mesh.coordinates_of(rank).pipeline)].total();
  return bytes;
}

void require_card_of_threads(const run::Run& run) {
  if (run.options.train.memory_check == "off") return;
  const auto ranks = static_cast<int>(run.mesh.world());
  for (int turn = 0; turn < ranks; ++turn) {
    const std::optional<backend::Card> card = backend::card_of_turn(turn);
    if (!card || turn >= card->cards) return;
    require_on_card(run, *card, ceil_div(ranks - turn, card->cards), bytes_on_card(run, turn, card->cards));
  }
}

}  // namespace penstock::cli
