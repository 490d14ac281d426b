// SPDX-License-Identifier: Apache-2.0
#include "schedule/program_index.h"

#include "base/error.h"

namespace penstock::schedule {

ProgramIndex::ProgramIndex(const Program& program)
    : stages_(program.stages), first_cell_{0}, devices_of_(program.stages) {
  for (const int n : program.slices) first_cell_.push_back(first_cell_.back() + n);
  forward_.resize(stages_ * first_cell_.back());
  backward_.resize(stages_ * first_cell_.back());
  for (int device = 0; device < program.device_count(); ++device) {
    const std::vector<Op>& ops = program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (!is_action(op.kind)) continue;
      const std::size_t at = cell(op.key);
      PENSTOCK_CHECK(at != kNone, "an op's stage, micro-batch and slice are the program's: check() it first");
      if (op.kind == OpKind::Forward) forward_[at] = {device, i};
      if (is_backward(op.kind)) backward_[at] = {device, i};
      std::vector<int>& homes = devices_of_[op.key.stage];
      if (homes.empty() || homes.back() != device) homes.push_back(device);
    }
  }
}

std::size_t ProgramIndex::cell(const Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const int micro_batches = static_cast<int>(first_cell_.size()) - 1;
  if (stage < 0 || stage >= stages_ || micro_batch < 0 || micro_batch >= micro_batches || slice < 0)
    return kNone;
  const std::size_t in_row = first_cell_[micro_batch] + slice;
  return in_row < first_cell_[micro_batch + 1] ? stage * first_cell_.back() + in_row : kNone;
}

Place ProgramIndex::look_up(const std::vector<Place>& places, const Key& key) const {
  const std::size_t at = cell(key);
  return at == kNone ? Place{} : places[at];
}

}  // namespace penstock::schedule
