// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_run.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "cli/exchange.h"
#include "cli/memory_report.h"
#include "cli/run_costs.h"
#include "model/offload_choice.h"
#include "model/visit_memory.h"
#include "schedule/forward_only.h"
#include "schedule/placement.h"
#include "sim/result.h"

namespace penstock::cli {
namespace {

Bytes hidden_bytes(const ResolvedRun& run, Tokens tokens) {
  const model::Precision precision = model::parse_precision(run.options.train.precision);
  return run.options.train.micro_batch * tokens * run.options.model.shape.hidden *
         model::element_size(precision);
}

bool is_sharded(const ResolvedRun& run) { return run.options.schedule.vocabulary_parallel; }

// Weights, gradients and optimizer states of a device; what depends on the schedule is left 0.
model::DeviceMemory standing_memory(const ResolvedRun& run, const std::vector<int>& stages) {
  const model::Shape& shape = run.options.model.shape;
  const model::Precision precision = model::parse_precision(run.options.train.precision);
  const Bytes element = element_size(precision), accumulator = accumulator_size(precision);
  const int last_stage = static_cast<int>(run.layers.size()) - 1;
  const Bytes embedding = is_sharded(run) ? 0 : shape.vocab * shape.hidden;
  // On its owner's own device the output side of a tied embedding has a gradient of its own and nothing more.
  const bool alias = shape.tied_embeddings && (last_stage == 0 || is_sharded(run));
  Bytes parameters = 0, gradients = 0, tables = 0;
  if (is_sharded(run)) {
    const Bytes shard = model::shard_rows(shape, run.options.parallel.pp) * shape.hidden;
    parameters += alias ? shard : 2 * shard;
    gradients += alias ? shard : 0;
  }
  for (const int stage : stages) {
    parameters += run.layers[static_cast<std::size_t>(stage)].count * layer_parameters(shape);
    parameters += stage == 0 ? embedding : 0;
    if (stage == last_stage) parameters += alias || is_sharded(run) ? shape.hidden : output_parameters(shape);
    if (stage == last_stage && alias) gradients += embedding;
    tables += run.options.data.seq_len * (shape.head_dim() / 2) * 2;  // sines and cosines of the rotation
  }
  const Bytes states = precision == model::Precision::BF16 ? 3 : 2;
  model::DeviceMemory memory;
  memory.weights = parameters * element + tables * accumulator;
  memory.gradients = (gradients + parameters) * accumulator;
  memory.optimizer = states * parameters * accumulator;
  return memory;
}

// The other side's gradient of tied embeddings, while both sides are added.
Bytes tied_bytes(const schedule::Program& program, int device) {
  Bytes bytes = 0;
  for (const schedule::Op& op : program.devices[static_cast<std::size_t>(device)].ops) {
    if (op.kind == schedule::OpKind::ReduceGradients && op.peer >= 0) bytes = std::max(bytes, op.bytes);
  }
  return bytes;
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
  const auto accumulator = model::accumulator_size(model::parse_precision(run.options.train.precision));
  const auto element = model::element_size(model::parse_precision(run.options.train.precision));
  const std::int64_t devices = run.options.parallel.pp;
  lowering.vocabulary.parallel = is_sharded(run);
  lowering.vocabulary.visit_bytes = [hidden = lowering.transfer_bytes, accumulator, element](int j, int i) {
    return hidden(j, i) + hidden(j, i) / element * accumulator;
  };
  lowering.vocabulary.part_bytes = [hidden = lowering.transfer_bytes, devices](int j, int i) {
    return hidden(j, i) / devices;
  };
  lowering.exchange = exchange_of(run);
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
    const Bytes standing = memory.total(), tied = tied_bytes(program, device);
    const sim::DeviceMemory& moving = result.devices[static_cast<std::size_t>(device)].memory;
    const auto peak = [&](sim::Category category) {
      return moving.peaks[static_cast<std::size_t>(category)];
    };
    memory.activations = peak(sim::Category::Records);
    memory.weight_records = peak(sim::Category::WeightRecords);
    memory.kv_gradients = peak(sim::Category::KvGradients);
    memory.logits = peak(sim::Category::Logits);
    (run.options.memory.offload_to == "disk" ? memory.disk : memory.host) = moving.away_peak;
    const Bytes help = help_buffers(run, program, device), served = help_temporaries(run, program, device);
    memory.transfers = peak(sim::Category::Queues) + peak(sim::Category::Buffers) + help;
    memory.transient = std::max(moving.temporary + served, tied);
    memory.at_once = standing + std::max(moving.peak + help + served, tied);
    table.push_back(memory);
  }
  return table;
}

model::MemoryTable predict_memory(const ResolvedRun& run) {
  return predict_memory(run, schedule::lower(run.schedule, lowering_of(run)));
}

train::RunPlan plan_run(const ResolvedRun& run) {
  const schedule::Placement placement(run.schedule);
  if (placement.has_replicas()) {
    const schedule::ScheduleOptions& chosen = run.options.schedule;
    throw InputError((chosen.file.empty() ? "schedule.name = " + json_quote(chosen.name)
                                          : "schedule.file = " + json_quote(chosen.file)) +
                     " keeps two copies of the parameters, which train does not; use dualpipe-v");
  }
  train::RunPlan plan{.options = run.options, .layers = run.layers, .keep = run.keep};
  for (int stage = 0; stage < run.schedule.stages; ++stage) {
    plan.device_of_stage.push_back(placement.device_of(stage, 0));
  }
  plan.program = schedule::lower(run.schedule, lowering_of(run));
  const schedule::Schedule forwards =
      is_sharded(run) ? schedule::forwards_of(run.schedule)
                      : schedule::forward_only(run.schedule, run.schedule.micro_batches());
  schedule::Lowering evaluation = lowering_of(run);
  evaluation.gradients = {};
  evaluation.offload_bytes = {};
  evaluation.exchange = {};
  evaluation.optimizer_step = false;
  plan.evaluation = schedule::lower(forwards, evaluation);
  if (!is_sharded(run)) plan.evaluation = schedule::with_back_pressure(plan.evaluation);
  for (const int slices : run.schedule.slices) plan.slices.push_back(cut(run, slices));
  for (const int slices : forwards.slices) plan.evaluation_slices.push_back(cut(run, slices));
  plan.predicted = predict_memory(run, plan.program);
  plan.memory_note = run.memory_note;
  plan.exchange_note = run.exchange_note;
  return plan;
}

namespace {

std::string exchange_line(const train::RunPlan& plan) {
  const schedule::ScheduleOptions& chosen = plan.options.schedule;
  if (!plan.exchange_note.empty()) return "exchange  " + plan.exchange_note + "\n";
  if (chosen.exchange == "off") return {};
  return "exchange  " + chosen.exchange + ": " + std::to_string(plan.program.help.size()) +
         " actions' attention is shared in a step\n";
}

std::string slices_of(const train::RunPlan& plan) {
  const auto [least, most] = std::ranges::minmax(plan.program.slices);
  const std::string counts =
      least == most ? std::to_string(most) : std::to_string(least) + " to " + std::to_string(most);
  return counts + (most == 1 ? " slice" : " slices");
}

}  // namespace

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
       << slices_of(plan) << "\n"
       << exchange_line(plan) << "machine   " << machine << ", " << threads
       << (threads == 1 ? " thread" : " threads") << " a rank\n"
       << memory_before(plan);
  return text.str();
}

}  // namespace penstock::cli
