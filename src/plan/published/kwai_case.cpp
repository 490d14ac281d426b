// SPDX-License-Identifier: Apache-2.0
#include "plan/published/kwai_case.h"

#include "base/error.h"
#include "plan/models.h"
#include "plan/published/rows.h"

namespace penstock::plan {
namespace {

model::Policy policy_of(const Table& table, std::size_t row) {
  const std::string& name = table.text(row, "ckpt");
  if (name == "no") return model::Policy::Engine24;
  if (name == "ours") return model::Policy::Balanced;
  if (name == "full") return model::Policy::Full;
  refuse_cell(table, row, "ckpt", "expected no, ours or full");
}

}  // namespace

KwaiCase kwai_memory_case(const Table& table, std::size_t row) {
  KwaiCase result;
  result.mesh = mesh_of(table, row);
  result.shape = find_model(table.text(row, "model")).shape;
  result.shape.vocab = padded_vocabulary(result.shape.vocab, result.mesh.tensor);
  result.seq_len = table.integer(row, "seq_len");
  const std::int64_t sequences = result.mesh.data * table.integer(row, "micro_batch");
  result.micro_batches =
      static_cast<int>(std::max<std::int64_t>(1, table.integer(row, "global_batch") / sequences));
  const std::int64_t per_device = result.mesh.pipeline * table.integer(row, "layers_per_chunk");
  if (result.shape.layers % per_device != 0) {
    throw InputError(table.origin() + ": row " + std::to_string(row + 1) +
                     ": pp·layers_per_chunk = " + std::to_string(per_device) +
                     " does not divide the model's " + std::to_string(result.shape.layers) + " layers");
  }
  result.chunks = static_cast<int>(result.shape.layers / per_device);
  result.policy = policy_of(table, row);
  result.offload = offload_ratio(table, row);
  return result;
}

std::string kwai_setting(const Table& table, std::size_t row) {
  std::string text = print_mesh(mesh_of(table, row)) + " l" + table.text(row, "layers_per_chunk") + " " +
                     table.text(row, "ckpt") + " α" + table.text(row, "offload_ratio");
  return table.has("system") ? table.text(row, "system") + " " + text : text;
}

}  // namespace penstock::plan
