// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_run.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "cli/run_costs.h"
#include "model/memory_device.h"
#include "model/memory_policy.h"
#include "model/offload_choice.h"
#include "schedule/forward_only.h"
#include "schedule/placement.h"
#include "sim/result.h"

namespace penstock::cli {
namespace {

std::vector<model::TokenRange> cut(const ResolvedRun& run, int slices) {
  return model::cut_into_slices(run.options.data.seq_len, slices);
}

Bytes hidden_bytes(const ResolvedRun& run, Tokens tokens) {
  const model::Precision precision = model::parse_precision(run.options.train.precision);
  return run.options.train.micro_batch * tokens * run.options.model.shape.hidden *
         model::element_size(precision);
}

// Weights, gradients, optimizer, logits and temporaries of a device; what depends on the schedule is left 0.
model::DeviceMemory standing_memory(const ResolvedRun& run, const std::vector<int>& stages) {
  const int last_stage = static_cast<int>(run.layers.size()) - 1;
  model::DeviceLoad load;
  for (const int stage : stages) {
    load.layers += static_cast<double>(run.layers[static_cast<std::size_t>(stage)].count);
    load.embeddings += stage == 0 ? 1.0 : 0.0;
    const bool alias = run.options.model.shape.tied_embeddings && last_stage == 0;
    load.embeddings += stage == last_stage && !alias ? 1.0 : 0.0;
    load.last |= stage == last_stage;
  }
  // No tile has more rows than the longest slice.
  const Tokens longest = cut(run, std::ranges::min(run.schedule.slices)).front().length;
  const Tokens tile = std::min(run.options.train.loss_tile_tokens, run.options.train.micro_batch * longest);
  const model::MemoryPlan plan{.shape = run.options.model.shape,
                               .precision = model::parse_precision(run.options.train.precision),
                               .seq_len = run.options.data.seq_len,
                               .micro_batch = static_cast<int>(run.options.train.micro_batch),
                               .slices = std::ranges::max(run.schedule.slices),
                               .keep = model::keep_of(model::Policy::None),
                               .loss_tile = tile};
  model::DeviceMemory memory = model::device_memory(plan, load);
  // The kept gradient of the loss is part of the simulated records; here only the tile of logits remains.
  if (load.last) memory.logits -= hidden_bytes(run, run.options.data.seq_len);
  return memory;
}

}  // namespace

schedule::Lowering lowering_of(const ResolvedRun& run) {
  const model::Shape& shape = run.options.model.shape;
  schedule::Lowering lowering;
  lowering.transfer_bytes = [&run](int micro_batch, int slice) {
    const auto ranges = cut(run, run.schedule.slices[static_cast<std::size_t>(micro_batch)]);
    return hidden_bytes(run, ranges[static_cast<std::size_t>(slice)].length);
  };
  if (run.options.memory.offload.number > 0) {
    const auto records = std::make_shared<RunCosts>(run);
    lowering.offload_bytes = [records, share = run.options.memory.offload.number](int stage, int micro_batch,
                                                                                  int slice) {
      return model::leaving_bytes(records->costs().leavable(stage, micro_batch, slice), share);
    };
  }
  lowering.gradients.tied_embeddings = shape.tied_embeddings;
  lowering.gradients.tied_bytes =
      shape.vocab * shape.hidden *
      model::accumulator_size(model::parse_precision(run.options.train.precision));
  return lowering;
}

model::MemoryTable predict_memory(const ResolvedRun& run, const schedule::Program& program) {
  const sim::Result result = sim::evaluate(program, RunCosts(run).costs(), {.imbalance = false});
  const schedule::Placement placement(run.schedule);
  model::MemoryTable table;
  for (int device = 0; device < program.device_count(); ++device) {
    model::DeviceMemory memory = standing_memory(run, placement.stages_on(device));
    const auto& peaks = result.devices[static_cast<std::size_t>(device)].memory.peaks;
    const auto peak = [&](sim::Category category) { return peaks[static_cast<std::size_t>(category)]; };
    memory.activations = peak(sim::Category::Records);
    memory.weight_records = peak(sim::Category::WeightRecords);
    memory.kv_gradients = peak(sim::Category::KvGradients);
    const Bytes away = result.devices[static_cast<std::size_t>(device)].memory.away_peak;
    (run.options.memory.offload_to == "disk" ? memory.disk : memory.host) = away;
    memory.transfers = peak(sim::Category::Queues) + peak(sim::Category::Buffers);
    table.push_back(memory);
  }
  return table;
}

train::RunPlan plan_run(const ResolvedRun& run) {
  const schedule::Placement placement(run.schedule);
  if (placement.has_replicas()) {
    const schedule::ScheduleOptions& chosen = run.options.schedule;
    throw InputError((chosen.file.empty() ? "schedule.name = " + json_quote(chosen.name)
                                          : "schedule.file = " + json_quote(chosen.file)) +
                     " keeps two copies of the parameters, which train does not; use dualpipe-v");
  }
  train::RunPlan plan{.options = run.options, .layers = run.layers};
  for (int stage = 0; stage < run.schedule.stages; ++stage) {
    plan.device_of_stage.push_back(placement.device_of(stage, 0));
  }
  plan.program = schedule::lower(run.schedule, lowering_of(run));
  const schedule::Schedule forwards = schedule::forward_only(run.schedule, run.schedule.micro_batches());
  schedule::Lowering evaluation = lowering_of(run);
  evaluation.gradients = {};
  evaluation.offload_bytes = {};
  evaluation.optimizer_step = false;
  plan.evaluation = schedule::lower(forwards, evaluation);
  for (const int slices : run.schedule.slices) plan.slices.push_back(cut(run, slices));
  for (const int slices : forwards.slices) plan.evaluation_slices.push_back(cut(run, slices));
  plan.predicted = predict_memory(run, plan.program);
  return plan;
}

std::string start_table(const train::RunPlan& plan, const std::string& machine, int threads) {
  const model::Shape& shape = plan.shape();
  const train::TrainOptions& train = plan.options.train;
  const Tokens tokens = train.batch * plan.options.data.seq_len;
  std::ostringstream text;
  text << "model     " << print_count(static_cast<double>(model::total_parameters(shape)))
       << " parameters: " << shape.layers << " layers, hidden " << shape.hidden << ", ffn " << shape.ffn
       << ", " << shape.heads << " heads (" << shape.kv_heads << " for keys and values), vocabulary "
       << shape.vocab << ", " << train.precision << "\n"
       << "step      " << train.batch << " sequences of " << plan.options.data.seq_len << " tokens, "
       << print_count(static_cast<double>(tokens) * model::flops_per_token(shape, plan.options.data.seq_len))
       << "FLOP (6·(N − embedding) + 6·L·h·s a token); " << train.steps << " steps\n"
       << "schedule  " << plan.program.name << ": " << plan.program.device_count() << " devices, "
       << plan.stages() << " stages, " << plan.program.micro_batches() << " micro-batches of "
       << plan.slices.front().size() << (plan.slices.front().size() == 1 ? " slice\n" : " slices\n")
       << "machine   " << machine << ", " << threads << (threads == 1 ? " thread" : " threads") << " a rank\n"
       << "memory    predicted peak of each device\n";
  for (std::size_t device = 0; device < plan.predicted.size(); ++device) {
    text << "  device " << device << "  " << print_bytes(plan.predicted[device].total()) << ": ";
    std::string parts;
    for (const auto& [name, bytes] : model::categories(plan.predicted[device])) {
      if (bytes > 0) parts += (parts.empty() ? "" : ", ") + std::string(name) + " " + print_bytes(bytes);
    }
    const model::DeviceMemory& memory = plan.predicted[device];
    if (memory.host > 0) parts += "; offloaded to the host " + print_bytes(memory.host);
    if (memory.disk > 0) parts += "; offloaded to disk " + print_bytes(memory.disk);
    text << parts << "\n";
  }
  return text.str();
}

}  // namespace penstock::cli
