// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include "base/text.h"

namespace penstock::run {

mesh::Mesh Run::logical_mesh() const {
  mesh::Mesh logical = mesh;
  logical.tensor = tensor_shards();
  return logical;
}

std::vector<model::TokenRange> cut(const Options& options, int slices) {
  return model::cut_into_slices(options.data.seq_len, slices, options.schedule.slice_unit);
}

Cuts cuts_of(const Options& options, const std::vector<int>& slices) {
  Cuts cuts;
  for (const int count : slices) cuts.push_back(cut(options, count));
  return cuts;
}

std::string name_of_schedule(const Options& options) {
  const ScheduleOptions& chosen = options.schedule;
  return chosen.file.empty() ? "schedule.name = " + json_quote(chosen.name)
                             : "schedule.file = " + json_quote(chosen.file);
}

}  // namespace penstock::run
