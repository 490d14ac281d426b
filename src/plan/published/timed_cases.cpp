// SPDX-License-Identifier: Apache-2.0
#include "plan/published/timed_cases.h"

#include "plan/published/kwai_case.h"
#include "plan/published/rows.h"
#include "plan/published/score_tables.h"

namespace penstock::plan {
namespace {

// Parses one of two words.
bool is_first(const Table& table, std::size_t row, const char* column, const char* first,
              const char* second) {
  const std::string& cell = table.text(row, column);
  if (cell != first && cell != second)
    refuse_cell(table, row, column, std::string("expected ") + first + " or " + second);
  return cell == first;
}

std::string kwai_engine(const Table& table, std::size_t row) {
  const std::string& system = table.text(row, "system");
  if (system == "ours" || system == "baseline") return "kwai";
  if (system == "original-megatron") return "megatron-2024";
  refuse_cell(table, row, "system", "expected ours, baseline or original-megatron");
}

// The global batch must give every replica at least one micro-batch.
void check_batch(const Table& table, std::size_t row, const TimedCase& timed) {
  if (micro_batches(timed.workload, timed.layout) < 1)
    refuse_cell(table, row, "global_batch", "expected at least dp·micro_batch");
}

// Exposed fraction of expert traffic that overlaps with other work; fraction of an expert layer's host time
// that is left with CUDA graphs. Assumed: too few rows mention them to fit these.
constexpr double kHiddenDispatch = 0.3;
constexpr double kCaptured = 0.5;

sim::Engine changed(sim::Engine engine, const EngineChanges& changes) {
  engine.sequence_parallel = changes.sequence_parallel;
  if (changes.compiled) engine.fuse_elementwise();
  if (changes.fused_norms) engine.unfused_passes = 0;
  if (changes.cut_experts) engine.folded_experts = false;
  if (changes.looped_experts) engine.grouped_experts = false;
  if (changes.third_attention) engine.attention = "fa3";
  if (changes.direct_dispatch) engine.direct_dispatch = true;
  if (changes.hidden_dispatch) engine.expert_exposed *= kHiddenDispatch;
  if (changes.captured) engine.expert_ms *= kCaptured;
  if (changes.gradient_bytes > 0) engine.gradient_bytes = changes.gradient_bytes;
  return engine;
}

}  // namespace

sim::Engine engine_of(const TimedCase& timed, const KnownMachines& known) {
  return changed(find_engine(known.engines, timed.engine), timed.changes);
}

StepCost cost_of(const TimedCase& timed, const KnownMachines& known) {
  const sim::Engine engine = engine_of(timed, known);
  const sim::Hardware& hardware = find_hardware(known.hardware, timed.hardware);
  if (timed.network_gbps == 0 && timed.node_gpus == 0)
    return step_cost(timed.workload, timed.layout, hardware, engine);
  sim::Hardware other = hardware;
  if (timed.network_gbps > 0) other.network.gbps_per_gpu = timed.network_gbps;
  if (timed.node_gpus > 0) other.node.gpus = timed.node_gpus;
  return step_cost(timed.workload, timed.layout, other, engine);
}

Seconds seconds_of(const TimedCase& timed, const KnownMachines& known) {
  return cost_of(timed, known).total();
}

TimedCase timed_case(const Table& table, std::size_t row) {
  if (table.has("tokens_per_second")) return kwai_timed_case(table, row);
  return table.has("iteration_s") ? calculon_case(table, row) : vtrain_case(table, row);
}

TimedCase kwai_timed_case(const Table& table, std::size_t row) {
  const KwaiCase memory = kwai_memory_case(table, row);
  TimedCase timed;
  timed.workload = {find_model(table.text(row, "model")), memory.seq_len, table.integer(row, "global_batch")};
  timed.layout.mesh = memory.mesh;
  timed.layout.schedule = memory.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  timed.layout.micro_batch = table.small(row, "micro_batch");
  timed.layout.chunks = memory.chunks;
  timed.layout.keep = model::keep_of(memory.policy);
  timed.layout.offload = memory.offload;
  timed.hardware = table.text(row, "hardware");
  timed.engine = kwai_engine(table, row);
  check_batch(table, row, timed);
  return timed;
}

TimedCase calculon_case(const Table& table, std::size_t row) {
  TimedCase timed;
  timed.workload = {find_model(table.text(row, "model")), table.integer(row, "seq_len"),
                    table.integer(row, "global_batch")};
  timed.layout.mesh = mesh_of(table, row);
  timed.layout.chunks = table.small(row, "chunks_per_device");
  timed.layout.schedule = timed.layout.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  timed.layout.micro_batch = table.small(row, "micro_batch");
  timed.layout.recompute_scores = is_first(table, row, "recompute", "selective", "full");
  timed.layout.keep =
      model::keep_of(timed.layout.recompute_scores ? model::Policy::None : model::Policy::Full);
  timed.hardware = "a100";
  timed.engine = "megatron-2022";
  timed.changes.sequence_parallel = is_first(table, row, "sequence_parallel", "yes", "no");
  check_batch(table, row, timed);
  return timed;
}

TimedCase vtrain_case(const Table& table, std::size_t row) {
  TimedCase timed;
  timed.workload = {
      gpt(table.integer(row, "layers"), table.integer(row, "hidden"), table.integer(row, "heads"), 50257),
      table.integer(row, "seq_len"), table.integer(row, "global_batch")};
  timed.layout.mesh = mesh_of(table, row);
  timed.layout.schedule = ScheduleKind::OneFOneB;
  timed.layout.micro_batch = table.small(row, "micro_batch");
  timed.layout.keep = model::keep_of(model::Policy::Full);
  timed.hardware = "a100-vtrain";
  timed.engine = "megatron-deepspeed";
  timed.changes.sequence_parallel = false;
  check_batch(table, row, timed);
  return timed;
}

}  // namespace penstock::plan
