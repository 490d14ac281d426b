// SPDX-License-Identifier: Apache-2.0
#include "plan/constraints.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/indexed_rows.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

struct RejectionText {
  Rejection rejection;
  std::string_view name, sentence;
};

constexpr std::array<RejectionText, kRejections> kRejectionTexts{{
    {Rejection::Heads, "heads",
     "tp must divide the heads, and divide the key-value heads or be a multiple of them"},
    {Rejection::TensorInNode, "tensor_in_node", "tp must divide the devices of a node"},
    {Rejection::Experts, "experts",
     "ep must divide the experts and tp·cp·dp (dp·cp where experts are cut by tp)"},
    {Rejection::Batch, "batch", "dp·micro_batch must divide the global batch"},
    {Rejection::Layers, "layers", "every one of pp·chunks stages needs a layer"},
    {Rejection::Tokens, "tokens",
     "slices·cp·tp must divide the sequence, and 2·cp too where cp > 1; several slices have at least 256 "
     "tokens each"},
    {Rejection::Schedule, "schedule",
     "the schedule does not take these micro-batches, slices, groups or chunks; chunks need a pipeline"},
    {Rejection::Duplicate, "duplicate",
     "a schedule of slices with one slice is the one without slices, another candidate"},
    {Rejection::Exchange, "exchange",
     "context exchange needs slimpipe's slots, slices, a pipeline and stages of equal layers"},
    {Rejection::Vocabulary, "vocabulary", "vocabulary parallelism needs slimpipe's slots and a pipeline"},
    {Rejection::Trainer, "trainer", "the trainer of cluster.engine cannot run it"},
    {Rejection::DeviceMemory, "device_memory", "the device's memory is too small, whatever is offloaded"},
    {Rejection::HostMemory, "host_memory", "the host's memory is too small for what must be offloaded"},
}};

static_assert(rows_are_in_order(kRejectionTexts, &RejectionText::rejection),
              "name_of and sentence_of index by the enumerator");

bool heads_divide(const model::Shape& shape, int tensor) {
  if (shape.heads % tensor != 0) return false;
  return shape.kv_heads % tensor == 0 || tensor % shape.kv_heads == 0;
}

// Devices in lockstep: only slimpipe has slots in which all devices do the same kind of work.
bool has_slots(const Layout& layout) { return layout.schedule == ScheduleKind::SlimPipe; }

bool tokens_divide(const Workload& workload, const Layout& layout) {
  const std::int64_t parts =
      static_cast<std::int64_t>(layout.slices) * layout.mesh.context * layout.mesh.tensor;
  const std::int64_t pieces = layout.mesh.context > 1 ? 2LL * layout.mesh.context : 1;  // two a context rank
  const bool long_enough = layout.slices == 1 || workload.seq_len / layout.slices >= kShortestSlice;
  return long_enough && workload.seq_len % parts == 0 && workload.seq_len % pieces == 0;
}

constexpr std::int64_t kMostDivisor = 128;
constexpr std::int64_t kMostExperts = 4096;  // more than any model has

std::string divisors_of(const char* what, std::int64_t whole, std::int64_t greatest) {
  std::vector<std::string> found;
  for (std::int64_t i = 1; i <= std::min(whole, greatest); ++i) {
    if (whole % i == 0) found.push_back(std::to_string(i));
  }
  return std::string("; ") + what + " = " + std::to_string(whole) + " is divided by " + join(found, ", ");
}

// Counts of slices are offered only up to the shortest legal slice.
std::string parts_of_sequence(Tokens seq_len) {
  const std::int64_t slices = seq_len / kShortestSlice;
  const std::string shortest = std::to_string(kShortestSlice) + " tokens)";
  const char* what = "workload.seq_len";
  if (slices < 2)
    return divisors_of(what, seq_len, kMostDivisor) + " (in one slice: each of several needs " + shortest;
  if (slices >= kMostDivisor) return divisors_of(what, seq_len, kMostDivisor);
  return divisors_of(what, seq_len, slices) + " (at most " + std::to_string(slices) + " slices of " +
         shortest;
}

}  // namespace

bool repeats_another(const Layout& layout) {
  return layout.slices == 1 && is_sliced(layout.schedule) && layout.schedule != ScheduleKind::SlimPipe;
}

std::string_view name_of(Rejection rejection) {
  return kRejectionTexts[static_cast<std::size_t>(rejection)].name;
}

std::string_view sentence_of(Rejection rejection) {
  return kRejectionTexts[static_cast<std::size_t>(rejection)].sentence;
}

std::string legal_values(const Workload& workload, std::int64_t gpus_per_node, Rejection why) {
  const model::Shape& shape = workload.model.shape;
  switch (why) {
    case Rejection::Heads:
      return divisors_of("heads", shape.heads, kMostDivisor);
    case Rejection::TensorInNode:
      return divisors_of("node.gpus", gpus_per_node, kMostDivisor);
    case Rejection::Experts:
      return divisors_of("experts", shape.experts, kMostExperts);
    case Rejection::Batch:
      return divisors_of("workload.global_batch", workload.global_batch, kMostDivisor);
    case Rejection::Layers:
      return "; layers = " + std::to_string(shape.layers);
    case Rejection::Tokens:
      return parts_of_sequence(workload.seq_len);
    case Rejection::Schedule:
    case Rejection::Duplicate:
    case Rejection::Exchange:
    case Rejection::Vocabulary:
    case Rejection::Trainer:
    case Rejection::DeviceMemory:
    case Rejection::HostMemory:
      break;
  }
  return {};
}

std::optional<Rejection> reject_mesh(const Workload& workload, const mesh::Mesh& mesh,
                                     std::int64_t gpus_per_node, bool folds_experts) {
  const model::Shape& shape = workload.model.shape;
  if (!heads_divide(shape, mesh.tensor)) return Rejection::Heads;
  if (mesh.world() > gpus_per_node && gpus_per_node % mesh.tensor != 0) return Rejection::TensorInNode;
  if (shape.experts % mesh.expert != 0) return Rejection::Experts;
  if ((folds_experts ? mesh.ranks_per_stage() : mesh.replicas()) % mesh.expert != 0)
    return Rejection::Experts;
  if (mesh.pipeline > shape.layers) return Rejection::Layers;
  return std::nullopt;
}

std::optional<Rejection> reject_batch(const Workload& workload, const mesh::Mesh& mesh, int micro_batch) {
  if (workload.global_batch % (static_cast<std::int64_t>(mesh.data) * micro_batch) != 0)
    return Rejection::Batch;
  return std::nullopt;
}

std::optional<Rejection> reject_layout(const Workload& workload, const Layout& layout) {
  const int p = layout.mesh.pipeline;
  if (stages_of(layout) > workload.model.shape.layers) return Rejection::Layers;
  if (!tokens_divide(workload, layout)) return Rejection::Tokens;
  if (p == 1 && layout.chunks > 1) return Rejection::Schedule;
  if (!takes(layout.schedule, pipeline_shape(workload, layout))) return Rejection::Schedule;
  const bool grid = has_slots(layout) && p > 1;
  const bool equal = workload.model.shape.layers % stages_of(layout) == 0;
  if (layout.exchange != ExchangeMode::Off && (!grid || layout.slices == 1 || !equal))
    return Rejection::Exchange;
  if (layout.vocabulary_parallel && !grid) return Rejection::Vocabulary;
  return std::nullopt;
}

std::optional<Rejection> reject(const Workload& workload, const Layout& layout, std::int64_t gpus_per_node,
                                bool folds_experts) {
  if (const auto why = reject_mesh(workload, layout.mesh, gpus_per_node, folds_experts)) return why;
  if (const auto why = reject_batch(workload, layout.mesh, layout.micro_batch)) return why;
  return reject_layout(workload, layout);
}

}  // namespace penstock::plan
