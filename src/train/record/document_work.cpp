// SPDX-License-Identifier: Apache-2.0
#include "train/record/document_work.h"

#include <iterator>

#include "run/step_work.h"

namespace penstock::train {

DocumentWork gather_document_work(const run::Run& plan, const run::StepContent& content, Tokens padding,
                                  Seconds planning, comm::World world) {
  const run::StepWork own = run::step_work(plan, content.documents);
  double sums[] = {own.work, own.pairs, own.causal_pairs, own.slowest_of_slots, own.mean_of_slots};
  double most[] = {own.work, own.greatest_micro_batch, planning};
  comm::as_part_of("the work of a step", [&] {
    world->all_reduce(sums, std::size(sums), comm::Type::F64, comm::Reduction::Sum);
    world->all_reduce(most, std::size(most), comm::Type::F64, comm::Reduction::Max);
  });
  const double mean = sums[0] / world->size();
  DocumentWork work{.padding = padding,
                    .attended = sums[1] / sums[2],
                    .micro_batches = most[1] * static_cast<double>(content.documents.size()) / mean,
                    .replicas = most[0] / mean,
                    .planning_s = most[2]};
  if (sums[4] > 0) work.slots = sums[3] / sums[4];
  return work;
}

}  // namespace penstock::train
