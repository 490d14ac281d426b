// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering.h"

#include "base/error.h"
#include "model/memory/offload_choice.h"
#include "model/memory/visit.h"
#include "sim/costs/unit.h"

namespace penstock::sim {
namespace {

bool has_records(const CostTable& table) {
  const auto [stages, slices, devices] = table.extent();
  for (int stage = 0; stage < stages; ++stage) {
    for (int slice = 0; slice < slices; ++slice) {
      if (table.record(schedule::make_key(stage, 0, slice)).record > 0) return true;
    }
  }
  return false;
}

}  // namespace

schedule::Lowering lowering_of(const std::shared_ptr<const RunBytes>& bytes) {
  const Work& work = bytes->work();
  const Bytes element = element_size(work.precision), accumulator = accumulator_size(work.precision);
  schedule::Lowering lowering;
  lowering.transfer_bytes = [bytes](int j, int i) { return bytes->hidden_bytes(j, i); };
  lowering.vocabulary = {.parallel = work.vocabulary_parallel,
                         .visit_bytes =
                             [=](int j, int i) {
                               return static_cast<Bytes>(model::visit_bytes(
                                   as_double(bytes->hidden_bytes(j, i)), element, accumulator));
                             },
                         .part_bytes = [=, devices = work.mesh.pipeline](
                                           int j, int i) { return bytes->hidden_bytes(j, i) / devices; }};
  return lowering;
}

schedule::Lowering lowering_of(const CostTable& table, double offload) {
  if (offload > 0 && !has_records(table))
    throw InputError(
        "there are no records to offload; give the bytes of some, as in \"record * * 1000000 0 0\"");
  schedule::Lowering lowering;
  lowering.offload_bytes = [&table, offload](const schedule::Key& key) {
    return model::leaving_bytes(table.record(key).record, offload);
  };
  lowering.transfer_bytes = [&table](int, int slice) { return table.message(slice); };
  lowering.vocabulary.part_bytes = [&table](int, int slice) {
    return table.message(slice) / table.extent().devices;
  };
  return lowering;
}

schedule::Lowering unit_lowering(double offload, Bytes record) {
  schedule::Lowering lowering;
  lowering.offload_bytes = [leaving = model::leaving_bytes(record, offload)](const schedule::Key&) {
    return leaving;
  };
  return lowering;
}

}  // namespace penstock::sim
