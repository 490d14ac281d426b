// SPDX-License-Identifier: Apache-2.0
#include "plan/published/kwai_memory.h"

#include <algorithm>

#include "plan/in_flight.h"
#include "plan/published/divided_parameters.h"
#include "plan/published/offload_split.h"

namespace penstock::plan {
namespace {

using model::SavedTensor;

std::int64_t tokens_of(const KwaiCase& c) { return c.seq_len / c.mesh.tensor / c.mesh.context; }
double layers_on_device(const KwaiCase& c) { return as_double(c.shape.layers) / c.mesh.pipeline; }

// Megatron runs all forwards first if there are as many micro-batches as devices.
double kwai_in_flight(const KwaiCase& c, int rank) {
  const PipelineShape shape{c.mesh.pipeline, c.micro_batches, 1, c.chunks};
  if (c.chunks > 1 && c.micro_batches == c.mesh.pipeline) return c.micro_batches * c.chunks;
  return records_in_flight(c.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB, shape, rank);
}

double states(const KwaiCase& c, int rank) {
  const double embeddings = (rank == 0 ? 1 : 0) + (rank == c.mesh.pipeline - 1 ? 1 : 0);
  const auto local = divided_parameters(c.shape, c.mesh, layers_on_device(c), embeddings);
  return model::weight_bytes(local, model::Precision::BF16) +
         model::gradient_bytes(local, model::Precision::BF16) +
         model::optimizer_bytes(local, c.mesh, model::Precision::BF16);
}

double scratch(const KwaiCase& c) {
  const auto layer = divided_parameters(c.shape, c.mesh, 1, 0, /*norms=*/false);
  return model::weight_bytes(layer, model::Precision::BF16);
}

// At the end of a forward: the MLP tensors that no record keeps.
double forward_transient(const KwaiCase& c) {
  double bytes = 0;
  for (const auto tensor : {SavedTensor::GateUp, SavedTensor::SiluGate, SavedTensor::Product}) {
    if (!model::keep_of(c.policy).has(tensor))
      bytes += as_double(2 * model::numbers_per_token(c.shape, tensor));
  }
  return bytes * as_double(tokens_of(c));
}

// At the start of a backward: recomputed tensors, the MLP's gradients (4f bytes per token more than the
// tensors they replace), and the gradient of the hidden state, also gathered over t.
double backward_transient(const KwaiCase& c) {
  const Bytes kept = model::kept_bytes(c.shape, model::keep_of(c.policy), 2);
  const Bytes all = model::kept_bytes(c.shape, model::keep_of(model::Policy::Engine24), 2);
  const Bytes gradients = 4 * c.shape.ffn + 2 * c.shape.hidden * (1 + c.mesh.tensor);
  return as_double(all - kept + gradients) * as_double(tokens_of(c));
}

// A freed block is reused whole for a smaller request if the request fills more than half of it and the rest
// is under 20 MiB (PyTorch's kLargeBuffer): then the remainder of a split tensor occupies the tensor's old
// block.
double wasted(const OffloadSplit& split) {
  const bool reused = split.cut_off < 20 * MiB && split.cut_off < split.remainder;
  return reused ? as_double(split.cut_off) : 0.0;
}

}  // namespace

KwaiMemory kwai_device_memory(const KwaiCase& c, int rank) {
  const double tokens = as_double(tokens_of(c));
  const auto layers = static_cast<int>(c.shape.layers / c.mesh.pipeline / c.chunks);
  const auto keep = model::keep_of(c.policy);
  const double statistics = as_double(4 * c.shape.heads + 8) * tokens;
  const double record = (as_double(model::kept_bytes(c.shape, keep, 2)) * tokens + statistics) * layers;
  const double records = kwai_in_flight(c, rank);
  const OffloadSplit split = split_for_offload(c.shape, keep, tokens_of(c), layers, c.offload);
  const double leaving = as_double(split.leaving);

  // The peak is at the end of a forward, with two whole records and two buffers of loaded data, or at the
  // start of the next backward, with one whole record less but live gradients.
  const double at_forward = forward_transient(c);
  const double at_backward = backward_transient(c) - leaving;
  KwaiMemory memory;
  memory.states = states(c, rank);
  memory.scratch = scratch(c);
  memory.records = records * record - model::offloaded_records(records) * leaving;
  memory.split = as_double(split.remainder) + wasted(split) * std::max(0.0, records - 2);
  memory.logits = rank == c.mesh.pipeline - 1
                      ? 6.0 * as_double(c.shape.vocab) / c.mesh.tensor * as_double(c.seq_len / c.mesh.context)
                      : 0.0;
  memory.transient = std::max(at_forward, at_backward);
  return memory;
}

KwaiMemory kwai_memory(const KwaiCase& c) {
  KwaiMemory fullest;
  for (int rank = 0; rank < c.mesh.pipeline; ++rank) {
    const KwaiMemory memory = kwai_device_memory(c, rank);
    if (memory.total() > fullest.total()) fullest = memory;
  }
  return fullest;
}

bool kwai_fits(const KwaiMemory& memory, double gpu_bytes) {
  return memory.total() + kKwaiReservedBytes <= gpu_bytes;
}

}  // namespace penstock::plan
