// SPDX-License-Identifier: Apache-2.0
#include "plan/published/slimpipe_planner.h"

#include "plan/published/divided_parameters.h"

namespace penstock::plan {
namespace {

using model::Policy;

constexpr Bytes kElement = 2;

// One slice-chunk, in tokens times layers.
double unit(const PlannerCase& c) {
  const double layers = as_double(c.shape.layers) / c.mesh.pipeline / c.chunks;
  return layers * as_double(c.seq_len) / c.slices / c.mesh.tensor / c.mesh.context;
}

// Records in flight on the first device; the original does not cap them at the number of micro-batches.
double planned_in_flight(const PlannerCase& c) {
  const double p = c.mesh.pipeline;
  if (c.slimpipe) return c.slices * c.chunks + 2 * (p - 1);
  return c.chunks > 1 ? (c.chunks - 1) * p + 2 * (p - 1) + 1 : p;
}

double recomputed_per_token(const PlannerCase& c, const PlannerConventions& conventions) {
  // The original does not count experts' dispatched rows.
  const model::KeepSet keep = model::keep_of(c.policy).with(model::SavedTensor::Dispatched);
  const Bytes input =
      c.policy == Policy::Full && conventions.input_in_recomputed ? kElement * c.shape.hidden : 0;
  Bytes bytes = model::recomputed_bytes(c.shape, keep, kElement, c.slimpipe) + input;
  // Norm outputs are omitted if attention's tensors are kept.
  if (c.policy == Policy::BalancedFc1) bytes = 3 * kElement * c.shape.experts_per_token * c.shape.ffn;
  return as_double(bytes);
}

// Slices of cached K,V: all under full recomputation; with offloading, a copy of the offloaded ones.
double cached_slices(const PlannerCase& c) {
  if (!c.slimpipe) return 0;
  if (c.offload > 0) return planned_in_flight(c) - 2;
  return c.policy == Policy::Full ? planned_in_flight(c) : 0;
}

// [2(p−1) + (n/p − 1)·p·(v+1)] slice-chunks of 4h bytes per token, for any number of key-value heads.
double kv_gradient(const PlannerCase& c) {
  if (!c.slimpipe) return 0;
  const double p = c.mesh.pipeline, n = c.slices;
  return (2 * (p - 1) + (n / p - 1) * p * (c.chunks + 1)) * as_double(2 * kElement * c.shape.hidden) *
         unit(c);
}

}  // namespace

std::string PlannerConventions::text() const {
  return std::string("layer input ") + (input_in_recomputed ? "counted" : "left out") +
         " in the recomputed part, " +
         (embedding_over_pipeline ? "embedding of slimpipe spread over the pipeline"
                                  : "whole embedding on a device");
}

PlannerConventions conventions_of(std::string_view source_file) {
  PlannerConventions conventions;
  conventions.input_in_recomputed = !source_file.starts_with("128-1f1b-i-full-recompute") &&
                                    !source_file.starts_with("128-slimpipe-full-recompute");
  conventions.embedding_over_pipeline = !source_file.starts_with("system_exp_128_");
  return conventions;
}

PlannerParts planner_parts(const PlannerCase& c, const PlannerConventions& conventions) {
  const double p = c.mesh.pipeline;
  const double embeddings = c.slimpipe && conventions.embedding_over_pipeline ? 1.0 / p : 1.0;
  const auto parameters =
      divided_parameters(c.shape, c.mesh, as_double(c.shape.layers) / p, embeddings, /*norms=*/false);
  const model::KeepSet keep = model::keep_of(c.policy).without(model::SavedTensor::Dispatched);
  const double record = as_double(model::kept_bytes(c.shape, keep, kElement)) * unit(c);
  const double tokens = as_double(c.seq_len) / c.mesh.tensor / c.mesh.context;

  PlannerParts parts;
  parts.weights_gradients = model::weight_bytes(parameters, model::Precision::BF16) +
                            model::gradient_bytes(parameters, model::Precision::BF16);
  parts.optimizer = model::optimizer_bytes(parameters, c.mesh, model::Precision::BF16);
  parts.host = c.offload * model::offloaded_records(planned_in_flight(c)) * record;
  parts.activation = planned_in_flight(c) * record - parts.host;
  parts.logits = c.slimpipe ? 4.0 * as_double(c.shape.vocab) * tokens / p : 0.0;
  parts.recomputed = recomputed_per_token(c, conventions) * tokens / c.slices;
  parts.kv_cache = cached_slices(c) * as_double(model::key_value_bytes(c.shape, kElement)) * unit(c);
  parts.kv_gradient = kv_gradient(c);
  const double slots = static_cast<double>(c.micro_batches) * c.slices * c.chunks;
  parts.bubble_percent = 100.0 * (p - 1) / (slots + p - 1);
  return parts;
}

}  // namespace penstock::plan
