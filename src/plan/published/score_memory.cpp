// SPDX-License-Identifier: Apache-2.0
// Scores the two memory tables.
#include <set>

#include "base/text.h"
#include "plan/models.h"
#include "plan/published/kwai_case.h"
#include "plan/published/rows.h"
#include "plan/published/score_tables.h"
#include "plan/published/slimpipe_planner.h"

namespace penstock::plan {
namespace {

constexpr double kGpuBytes = 80e9;  // "80 GB"
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

model::Policy planner_policy(const Table& table, std::size_t row) {
  const std::string& name = table.text(row, "recompute");
  if (name == "no") return model::Policy::None;
  if (name == "partial+fc1") return model::Policy::BalancedFc1;
  if (name == "full") return model::Policy::Full;
  refuse_cell(table, row, "recompute", "expected no, partial+fc1 or full");
}

PlannerCase planner_case(const Table& table, std::size_t row) {
  PlannerCase result;
  result.shape = find_model(table.text(row, "model")).shape;
  result.mesh = mesh_of(table, row);
  result.seq_len = table.integer(row, "seq_len");
  result.micro_batches =
      std::max(1, table.small(row, "global_batch") / result.mesh.data / table.small(row, "micro_batch"));
  result.slices = table.small(row, "slices");
  result.chunks = table.small(row, "chunks_per_device");
  result.slimpipe = table.text(row, "scheme") == "slimpipe";
  result.policy = planner_policy(table, row);
  result.offload = offload_ratio(table, row);
  return result;
}

std::vector<ScoredFigure> figures_of(const Table& table, std::size_t row, const PlannerParts& parts) {
  const std::pair<const char*, double> columns[] = {
      {"host_GiB", parts.host / kGiB},           {"params_grads_GiB", parts.weights_gradients / kGiB},
      {"optimizer_GiB", parts.optimizer / kGiB}, {"activation_GiB", parts.activation / kGiB},
      {"logits_GiB", parts.logits / kGiB},       {"recomputed_GiB", parts.recomputed / kGiB},
      {"kv_cache_GiB", parts.kv_cache / kGiB},   {"kv_grad_GiB", parts.kv_gradient / kGiB},
      {"peak_GiB", parts.peak() / kGiB},         {"bubble_percent", parts.bubble_percent}};
  const std::string setting = table.text(row, "scheme") + " " + print_mesh(mesh_of(table, row)) + " n" +
                              table.text(row, "slices") + " v" + table.text(row, "chunks_per_device") + " " +
                              table.text(row, "recompute");
  std::vector<ScoredFigure> figures;
  for (const auto& [column, predicted] : columns) {
    const auto published = table.number_if_any(row, column);
    if (published)
      figures.push_back({row, table.text(row, "model"), setting, column, predicted, *published, {}, {}, {}});
  }
  if (figures.empty()) throw Unscored{"no figure is published"};
  return figures;
}

}  // namespace

Score score_slimpipe_planner(const Table& table) {
  Score score{"slimpipe_planner", ErrorKind::Absolute, {}, {}, {}, {}, {}};
  std::map<std::string, std::string> conventions_by_file;
  for_each_row(table, score.refused, [&](std::size_t row) {
    const std::string& file = table.text(row, "source_file");
    const PlannerConventions conventions = conventions_of(file);
    const auto figures = figures_of(table, row, planner_parts(planner_case(table, row), conventions));
    conventions_by_file[file] = conventions.text();
    score.figures.insert(score.figures.end(), figures.begin(), figures.end());
  });
  score.notes.emplace_back(
      "published figures are themselves predictions, in the conventions of their planner");
  for (const auto& [file, text] : conventions_by_file) score.notes.push_back(file + ": " + text);
  return score;
}

Score score_kwai_memory(const Table& table) {
  Score score{"atc24_memory", ErrorKind::Relative, {}, {}, {}, {}, {}};
  for_each_row(table, score.refused, [&](std::size_t row) {
    const KwaiMemory memory = kwai_memory(kwai_memory_case(table, row));
    const std::string setting = kwai_setting(table, row);
    if (ran_out_of_memory(table, row, "peak_bytes")) {
      score.out_of_memory.push_back({row, setting, memory.total(), kwai_fits(memory, kGpuBytes)});
      return;
    }
    const double published = published_figure(table, row, "peak_bytes");
    score.figures.push_back(
        {row, table.text(row, "model"), setting, "peak_bytes", memory.total(), published, {}, {}, {}});
  });
  score.notes.push_back("no fitted constant; " + number(kKwaiReservedBytes / 1e9, 0) +
                        " GB of a GPU are held back for context, communication buffers and holes");
  return score;
}

}  // namespace penstock::plan
