// SPDX-License-Identifier: Apache-2.0
#include "run/memory.h"

#include <algorithm>
#include <iterator>

#include "run/costs.h"
#include "run/exchange.h"
#include "run/held_parameters.h"
#include "run/replicas.h"
#include "schedule/placement.h"
#include "sim/result.h"

namespace penstock::run {
namespace {

// Weights, gradients and optimizer states of a device; members that depend on the schedule stay 0.
model::MemoryPeaks standing_memory(const Run& run, const std::vector<int>& stages) {
  const auto [held, vocabulary, own_masters] = held_by_device(run, stages);
  const Bytes tables = run.options.data.seq_len * (run.shape().head_dim() / 2) * 2;
  const Bytes element = element_size(run.precision), accumulator = accumulator_size(run.precision);
  const bool sharded_weights = run.shards_weights();
  const HeldParameters standing = sharded_weights ? vocabulary : held;
  model::MemoryPeaks memory;
  memory.weights = standing.weights * element + tables * accumulator;  // sines and cosines of the rotation
  memory.gradients = standing.gradients * accumulator * gradient_buffers(run.options);
  if (sharded_weights) memory.gradients += (held.own_gradients - vocabulary.own_gradients) * accumulator;
  memory.optimizer = accumulator * (3 * held.states - own_masters);
  if (has_replicas(run)) memory.transfers = accumulator * replica_room(run, held.longest);
  return memory;
}

// Bytes of the other side's gradient of tied embeddings during their reduction, shard by shard.
Bytes tied_bytes(const Run& run, const schedule::Program& program, int device) {
  const bool meets = std::ranges::any_of(program.devices[device].ops, [](const schedule::Op& op) {
    return op.kind == schedule::OpKind::ReduceGradients && op.peer >= 0;
  });
  return meets ? accumulator_size(run.precision) * matrix_held(run).longest : 0;
}

model::MemoryPeaks memory_of(const Run& run, const schedule::Program& program, int device,
                             model::MemoryPeaks memory, const sim::MemoryUse& moving) {
  const auto peak = [&](sim::Held category) { return moving.peaks[static_cast<std::size_t>(category)]; };
  const Bytes standing = memory.total(), tied = tied_bytes(run, program, device);
  const Bytes exchanged = exchange_buffers(run, program, device);
  const Bytes served = exchange_temporaries(run, program, device);
  memory.buffers = memory.transfers + exchanged;
  memory.activations = peak(sim::Held::Records);
  memory.weight_records = peak(sim::Held::WeightRecords);
  memory.kv_gradients = peak(sim::Held::KvGradients);
  memory.logits = peak(sim::Held::Logits);
  memory.weights += peak(sim::Held::Weights);
  memory.gradients += peak(sim::Held::Gradients);
  memory.transfers = memory.buffers + peak(sim::Held::Queues) + peak(sim::Held::Buffers);
  memory.transient = std::max(moving.temporary + served, tied);
  memory.at_once = standing + std::max(moving.peak + exchanged + served, tied);
  (run.offload_to == OffloadTo::Disk ? memory.disk : memory.host) = moving.away_peak;
  return memory;
}

}  // namespace

model::MemoryTable predict_memory(const Run& run, const schedule::Program& program) {
  const sim::Result result =
      sim::evaluate(program, costs_of(run, sim::assumed_hardware()), {.imbalance = false});
  const schedule::Placement placement(run.schedule);
  model::MemoryTable table;
  for (int device = 0; device < program.device_count(); ++device) {
    table.push_back(memory_of(run, program, device, standing_memory(run, placement.stages_on(device)),
                              result.devices[device].memory));
  }
  return table;
}

std::size_t fullest_device(const model::MemoryTable& table) {
  const auto fullest = std::ranges::max_element(table, {}, &model::MemoryPeaks::total);
  return static_cast<std::size_t>(fullest - table.begin());
}

}  // namespace penstock::run
