// SPDX-License-Identifier: Apache-2.0
#include "plan/published/timed_cases.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/published/kwai_case.h"
#include "plan/published/score_tables.h"

namespace penstock::plan {
namespace {

constexpr sim::Engine kMegatron2022Plain = [] {
  sim::Engine engine = sim::kMegatron2022;
  engine.sequence_parallel = false;
  return engine;
}();

[[noreturn]] void refuse(const Table& table, std::size_t row, const char* column, const char* expected) {
  throw InputError(table.origin() + ": row " + std::to_string(row + 1) + ", " + column + " = \"" +
                   printable(table.text(row, column)) + "\"; expected " + expected);
}

// Parses one of two words.
bool is_first(const Table& table, std::size_t row, const char* column, const char* first,
              const char* second) {
  const std::string& cell = table.text(row, column);
  if (cell != first && cell != second)
    refuse(table, row, column, (std::string(first) + " or " + second).c_str());
  return cell == first;
}

const sim::Engine* kwai_engine(const Table& table, std::size_t row) {
  const std::string& system = table.text(row, "system");
  if (system == "ours" || system == "baseline") return &sim::kKwaiEngine;
  if (system == "original-megatron") return &sim::kMegatron2024;
  refuse(table, row, "system", "ours, baseline or original-megatron");
}

int small(const Table& table, std::size_t row, const char* column) {
  return static_cast<int>(std::min<std::int64_t>(table.integer(row, column), 1 << 20));
}

// The global batch must give every replica at least one micro-batch.
void check_batch(const Table& table, std::size_t row, const TimedCase& timed) {
  if (micro_batches(timed.workload, timed.layout) < 1)
    refuse(table, row, "global_batch", "at least dp·micro_batch");
}

}  // namespace

TimedCase kwai_timed_case(const Table& table, std::size_t row) {
  const KwaiCase memory = kwai_memory_case(table, row);
  TimedCase timed;
  timed.workload = {find_model(table.text(row, "model")), memory.seq_len, table.integer(row, "global_batch")};
  timed.layout.mesh = memory.mesh;
  timed.layout.schedule = memory.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  timed.layout.micro_batch = small(table, row, "micro_batch");
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
  timed.layout.chunks = small(table, row, "chunks_per_device");
  timed.layout.schedule = timed.layout.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  timed.layout.micro_batch = small(table, row, "micro_batch");
  timed.layout.recompute_scores = is_first(table, row, "recompute", "selective", "full");
  timed.layout.keep =
      model::keep_of(timed.layout.recompute_scores ? model::Policy::None : model::Policy::Full);
  timed.hardware = "a100";
  timed.engine =
      is_first(table, row, "sequence_parallel", "yes", "no") ? &sim::kMegatron2022 : &kMegatron2022Plain;
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
  timed.layout.micro_batch = small(table, row, "micro_batch");
  timed.layout.keep = model::keep_of(model::Policy::Full);
  timed.hardware = "a100-vtrain";
  timed.engine = &sim::kMegatronDeepSpeed;
  check_batch(table, row, timed);
  return timed;
}

}  // namespace penstock::plan
