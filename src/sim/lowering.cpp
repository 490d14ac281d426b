// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering.h"

namespace penstock::sim {

schedule::Lowering lowering_of(const std::shared_ptr<const RunBytes>& bytes) {
  const Work& work = bytes->work();
  const Bytes element = element_size(work.precision), accumulator = accumulator_size(work.precision);
  schedule::Lowering lowering;
  lowering.transfer_bytes = [bytes](int j, int i) { return bytes->hidden_bytes(j, i); };
  lowering.vocabulary = {
      .parallel = work.vocabulary_parallel,
      .visit_bytes = [=](int j,
                         int i) { return bytes->hidden_bytes(j, i) / element * (element + accumulator); },
      .part_bytes = [=, devices = work.mesh.pipeline](int j,
                                                      int i) { return bytes->hidden_bytes(j, i) / devices; }};
  return lowering;
}

}  // namespace penstock::sim
