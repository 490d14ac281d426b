// SPDX-License-Identifier: Apache-2.0
#include "plan/published/rows.h"

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::plan {
namespace {

constexpr std::int64_t kMostGpus = 1 << 24;

std::string model_of(const Table& table, std::size_t row) {
  if (table.has("model")) return table.text(row, "model");
  return table.has("params_billion") ? table.text(row, "params_billion") + "B" : std::string();
}

// Errors of unknown models and machines name neither file nor row.
std::string with_place(const Table& table, std::size_t row, const std::string& error) {
  if (error.starts_with(table.origin() + ": ")) return error;
  return table.origin() + ": row " + std::to_string(row + 1) + ": " + error;
}

}  // namespace

void for_each_row(const Table& table, std::vector<RefusedRow>& refused,
                  const std::function<void(std::size_t row)>& one) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    try {
      one(row);
    } catch (const Unscored& unscored) {
      refused.push_back({row, model_of(table, row), unscored.reason});
    } catch (const MissingColumn&) {
      throw;  // all rows lack it
    } catch (const InputError& error) {
      refused.push_back({row, model_of(table, row), with_place(table, row, error.what()), true});
    }
  }
}

void refuse_cell(const Table& table, std::size_t row, const char* column, const std::string& reason) {
  throw InputError(table.origin() + ": row " + std::to_string(row + 1) + ", " + column + " = \"" +
                   printable(table.text(row, column)) + "\": " + reason);
}

mesh::Mesh mesh_of(const Table& table, std::size_t row) {
  const auto size = [&](const char* column) { return table.has(column) ? table.small(row, column) : 1; };
  mesh::Mesh mesh;
  mesh.tensor = size("tp");
  mesh.context = size("cp");
  mesh.expert = size("ep");
  mesh.data = size("dp");
  mesh.pipeline = size("pp");
  check_mesh(table, row, mesh);
  return mesh;
}

void check_mesh(const Table& table, std::size_t row, const mesh::Mesh& mesh) {
  const std::int64_t ranks = product_within(kMostGpus, {mesh.tensor, mesh.context, mesh.pipeline, mesh.data});
  const std::string product =
      "tp·cp·pp·dp is " +
      (ranks > kMostGpus ? "more than " + std::to_string(kMostGpus) : std::to_string(ranks));
  if (table.has("gpus") && ranks != table.integer(row, "gpus")) refuse_cell(table, row, "gpus", product);
  if (ranks > kMostGpus)
    throw InputError(table.origin() + ": row " + std::to_string(row + 1) + ": " + product);
  if (table.has("ep") && mesh.ranks_per_stage() % mesh.expert != 0)
    refuse_cell(table, row, "ep", "expected a divisor of tp·cp·dp");
}

double offload_ratio(const Table& table, std::size_t row) {
  const char* column = "offload_ratio";
  if (table.text(row, column).empty()) return 0;
  const auto ratio = parse_number(table.text(row, column));
  if (!ratio || !(*ratio >= 0 && *ratio <= 1))
    refuse_cell(table, row, column, "expected a number from 0 to 1");
  return *ratio;
}

bool ran_out_of_memory(const Table& table, std::size_t row, const char* column) {
  return table.text(row, column) == "OOM";
}

double published_figure(const Table& table, std::size_t row, const char* column) {
  if (table.text(row, column).empty()) throw Unscored{"no " + std::string(column) + " is published"};
  const double figure = table.number(row, column);
  if (!(figure > 0)) refuse_cell(table, row, column, "expected a positive number");
  return figure;
}

}  // namespace penstock::plan
