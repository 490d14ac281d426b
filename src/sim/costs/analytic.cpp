// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/analytic.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/memory/terms.h"
#include "model/slice_halves.h"
#include "sim/costs/collectives.h"
#include "sim/costs/kernel_cost.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;

// Attention consists of products, so their peak rate bounds its rates.
void cap_attention(Measured& measured, double tflops) {
  for (Numbers* rates : {&measured.attention_tflops, &measured.attention_backward_tflops,
                         &measured.earlier_attention_tflops, &measured.earlier_attention_backward_tflops}) {
    for (double& rate : *rates) rate = std::min(rate, tflops);
  }
}

Hardware hardware_for(Hardware hardware, model::Precision precision) {
  const std::string peak = precision == model::Precision::BF16 ? "bf16" : "f32";
  const bool as_measured = peak == hardware.device.peak;
  hardware.device.peak = peak;
  if (!(hardware.peak() > 0))
    throw InputError("hardware " + hardware.device.name + ": device." + peak +
                     "_tflops is missing, and train.precision = \"" + std::string(name_of(precision)) + "\"");
  if (!as_measured) cap_attention(hardware.measured, 1e-12 * hardware.peak());
  return hardware;
}

// Number of layers by keep set.
std::map<std::uint16_t, int> kept_in(const Work& work, int stage) {
  std::map<std::uint16_t, int> layers;
  const auto [first, count] = work.layers[stage];
  for (std::int64_t layer = first; layer < first + count; ++layer) ++layers[work.kept_of(layer).bits];
  return layers;
}

// The keys that the queries of a slice attend to, in units of its own length.
struct Attended {
  double own = 1;      // fraction of the causal half of its own keys
  double earlier = 0;  // number of earlier slices
};

Attended attended(const Work& work, int micro_batch, int slice) {
  const auto& [begin, length] = work.slices[micro_batch][slice];
  const auto tokens = static_cast<double>(length);
  if (work.documents.empty()) return {1, static_cast<double>(begin) / tokens};
  const model::Documents& documents = work.documents[micro_batch];
  const auto sequences = static_cast<double>(documents.size());
  const model::TokenRange queries{begin, length};
  return {model::attended_pairs(documents, queries, queries) / (sequences * tokens * (tokens + 1) / 2),
          model::attended_pairs(documents, queries, {0, begin}) / (sequences * tokens * tokens)};
}

int shards_of(const Work& work) {
  return work.shard_group > 0 ? work.shard_group : static_cast<int>(work.mesh.replicas());
}

int expert_shards_of(const Work& work) {
  return work.expert_shard_group > 0 ? work.expert_shard_group
                                     : static_cast<int>(work.mesh.expert_replicas());
}

}  // namespace

AnalyticCosts::AnalyticCosts(Work work, const Hardware& hardware, const Engine& engine,
                             const AnalyticOptions& options)
    : bytes_(std::move(work)),
      hardware_(hardware_for(hardware, bytes_.work().precision)),
      engine_(engine),
      options_(options),
      copy_rate_(options.copy_rate.value_or(hardware.copy_rate(bytes_.work().mesh.world()))),
      stretch_(1 + hardware.straggling(bytes_.work().mesh.world())) {
  checked_seconds("attention_factor", options.attention_factor);
  fill_table();
  const Work& own = bytes_.work();
  dense_ = mesh::thinnest_sharding(own.mesh, shards_of(own), hardware_.node.gpus);
  if (own.shape.experts > 1)
    experts_ = mesh::thinnest_expert_sharding(own.mesh, expert_shards_of(own), hardware_.node.gpus);
}

void AnalyticCosts::fill_table() {
  const Work& work = bytes_.work();
  std::size_t slices = 0;
  std::vector<int> cuts;  // one micro-batch per cut
  for (int j = 0; j < static_cast<int>(work.slices.size()); ++j) {
    const int cut = bytes_.cut_of(j);
    first_.push_back(cut == j ? slices : first_[cut]);
    if (cut != j) continue;
    cuts.push_back(j);
    slices += work.slices[j].size();
  }
  std::map<std::tuple<std::map<std::uint16_t, int>, bool, bool>, std::size_t> kinds;
  for (int stage = 0; stage < work.stages(); ++stage) {
    const auto [kind, fresh] =
        kinds.try_emplace({kept_in(work, stage), stage == 0, work.is_last(stage)}, kinds.size());
    kind_of_stage_.push_back(kind->second);
    if (!fresh) continue;
    std::vector<SliceSeconds>& table = seconds_.emplace_back();
    for (const int j : cuts) {
      for (int i = 0; i < static_cast<int>(work.slices[j].size()); ++i)
        table.push_back(stage_seconds(stage, j, i));
    }
  }
}

LayerSlice AnalyticCosts::layer_slice(int micro_batch, int slice, model::KeepSet keep) const {
  const Work& work = bytes_.work();
  const auto& cut = work.slices[micro_batch];
  const auto own = static_cast<double>(cut[slice].length);
  const double sequence = static_cast<double>(cut.back().begin + cut.back().length);
  const Attended attention = attended(work, micro_batch, slice);
  return {.shape = work.shape,
          .mesh = work.mesh,
          .context = work.context,
          .shards = bytes_.split().per_rank(),
          .family = options_.family,
          .keep = keep,
          .tokens = own * static_cast<double>(work.sequences) / work.mesh.context,
          .own = own,
          .seen = attention.own,
          .earlier = attention.earlier,
          .sequence = sequence,
          .expert_load = options_.expert_load,
          .sliced = cut.size() > 1};
}

AnalyticCosts::SliceSeconds AnalyticCosts::stage_seconds(int stage, int micro_batch, int slice) const {
  const Work& work = bytes_.work();
  const double more = options_.attention_factor - 1;
  SliceSeconds sum;
  for (const auto& [bits, count] : kept_in(work, stage)) {
    const LayerSlice layer = layer_slice(micro_batch, slice, {bits});
    const LayerCost cost = layer_cost(layer, hardware_, engine_);
    LayerTerms backward = cost.backward;
    backward += cost.recompute;
    sum.forward += count * (cost.forward.total() + more * cost.forward.attention);
    const Seconds whole = backward.total() + more * backward.attention;
    const Seconds weights = weight_backward(layer, hardware_, engine_);
    sum.backward += count * whole;
    sum.input += count * (whole + cost.split - weights);
    sum.weights += count * weights;
    sum.forward_attention += count * (1 + more) * cost.forward.attention;
    sum.backward_attention += count * (1 + more) * backward.attention;
  }
  if (work.vocabulary_parallel) return sum;
  const LayerSlice layer = layer_slice(micro_batch, slice, {});
  if (stage == 0) sum.forward += embedding(layer, hardware_, engine_);
  if (work.is_last(stage)) sum.forward += output_layer(layer, hardware_, engine_, columns());
  return sum;
}

double AnalyticCosts::columns() const {
  const Work& work = bytes_.work();
  const std::int64_t ranks =
      work.vocabulary_parallel ? mesh::size(work.mesh, mesh::Group::Vocabulary) : work.mesh.tensor;
  return static_cast<double>(work.shape.vocab) / static_cast<double>(ranks);
}

const AnalyticCosts::SliceSeconds& AnalyticCosts::at(const Op& op) const {
  return seconds_[kind_of_stage_[op.key.stage]][first_[op.key.micro_batch] + op.key.slice];
}

Seconds AnalyticCosts::loss(const Op& op) const {
  const Work& work = bytes_.work();
  const LayerSlice layer = layer_slice(op.key.micro_batch, op.key.slice, {});
  const double own_hidden = as_double(bytes_.hidden_bytes(op.key.micro_batch, op.key.slice));
  return output_layer(layer, hardware_, engine_, columns()) +
         visit_messages(hardware_, work.mesh, own_hidden, work.precision);
}

namespace {

std::vector<int> stages_of(const Work& work, int device) {
  if (!work.held.empty()) return work.held[device];
  std::vector<int> stages;
  for (int stage = 0; stage < work.stages(); ++stage) {
    if ((work.devices.empty() ? stage : work.devices[stage]) == device) stages.push_back(stage);
  }
  return stages;
}

// The parameters of a stage; with a sharded vocabulary only those of its layers.
model::LocalParameters parameters_of(const Work& work, int stage) {
  double embeddings = 0;
  if (!work.vocabulary_parallel)
    embeddings = (stage == 0) + (work.is_last(stage) && !(work.shape.tied_embeddings && stage == 0));
  return model::held_parameters(work.shape, work.mesh, static_cast<double>(work.layers[stage].count),
                                embeddings);
}

}  // namespace

Seconds AnalyticCosts::optimizer(int device) const {
  const Work& work = bytes_.work();
  model::LocalParameters held;
  const auto add = [&](const model::LocalParameters& more) {
    held.dense += more.dense;
    held.expert += more.expert;
  };
  for (const int stage : stages_of(work, device)) add(parameters_of(work, stage));
  if (work.vocabulary_parallel)
    add(model::held_parameters(work.shape, work.mesh, 0,
                               (work.shape.tied_embeddings ? 1.0 : 2.0) / work.mesh.pipeline));
  const bool sharded = engine_.shards_optimizer;
  const double stepped =
      held.dense / (sharded ? shards_of(work) : 1) + held.expert / (sharded ? expert_shards_of(work) : 1);
  const double passed = work.sharded_weights.empty() ? held.total() : stepped;  // gradients on the device
  return optimizer_passes(hardware_, passed * engine_.gradient_passes + stepped * engine_.optimizer_bytes);
}

Seconds AnalyticCosts::seconds(int device, std::uint32_t, const Op& op) const {
  const Seconds fixed = op.kind == OpKind::OptimizerStep ? 1e-3 * hardware_.kernels.step_ms : 0;
  return stretch_ * unhindered(device, op) + fixed;
}

Seconds AnalyticCosts::unhindered(int device, const Op& op) const {
  switch (op.kind) {
    case OpKind::Forward:
      return at(op).forward;
    case OpKind::Backward:
      return at(op).backward;
    case OpKind::BackwardInput:
      return at(op).input;
    case OpKind::BackwardWeight:
      return at(op).weights;
    case OpKind::Offload:
    case OpKind::Reload:
      return static_cast<double>(op.bytes) / copy_rate_;
    case OpKind::VocabularyLoss:
      return loss(op);
    case OpKind::ReduceGradients:
    case OpKind::GatherWeights:
      if (op.peer >= 0)  // both sides send at once
        return message(hardware_, near(device, op.peer), static_cast<double>(op.bytes));
      if (op.group == mesh::Group::Replica) return over_replicas(op);
      return op.group == mesh::Group::Pipeline ? 0 : collective(op.group, static_cast<double>(op.bytes));
    case OpKind::OptimizerStep:
      return optimizer(device);
    default:
      return 0;
  }
}

bool AnalyticCosts::near(int device, int peer) const {
  return in_one_node(hardware_, bytes_.work().mesh, device, peer);
}

// A vocabulary group is not evenly spaced: its pipeline part is the slow one.
Seconds AnalyticCosts::collective(mesh::Group group, double bytes) const {
  const mesh::Group spaced = group == mesh::Group::Vocabulary ? mesh::Group::Pipeline : group;
  const bool gradients = group == mesh::Group::Replica || group == mesh::Group::ExpertReplica;
  return ring_pass(hardware_, mesh::thinnest(bytes_.work().mesh, spaced, hardware_.node.gpus), bytes,
                   gradients ? Payload::Gradients : Payload::Activations);
}

// Gradients are reduce-scattered over the ranks that share states, then all-reduced over the copies of a
// shard. Weights are gathered over the ranks that share states.
Seconds AnalyticCosts::over(const mesh::ShardingSpread& replicas, OpKind kind, double bytes) const {
  const Seconds shared = ring_pass(hardware_, replicas.shards, bytes, Payload::Gradients);
  if (kind == OpKind::GatherWeights) return shared;
  return shared +
         2 * ring_pass(hardware_, replicas.copies, bytes / replicas.shards.members, Payload::Gradients);
}

// The op's bytes include dense weights and experts.
Seconds AnalyticCosts::over_replicas(const Op& op) const {
  const Work& work = bytes_.work();
  const auto bytes = static_cast<double>(op.bytes);
  if (work.shape.experts == 1 || op.key.stage >= work.stages()) return over(dense_, op.kind, bytes);
  const model::LocalParameters held = parameters_of(work, op.key.stage);
  const double experts = held.expert > 0 ? bytes * held.expert / held.total() : 0;
  return over(dense_, op.kind, bytes - experts) + over(experts_, op.kind, experts);
}

Transfer AnalyticCosts::transfer(int device, std::uint32_t, const Op& send) const {
  const bool one_node = near(device, send.peer);
  const Seconds latency = message(hardware_, one_node, 0);
  return {stretch_ * (message(hardware_, one_node, static_cast<double>(send.bytes)) - latency),
          stretch_ * latency};
}

AttentionShare AnalyticCosts::attention(int, std::uint32_t, const Op& op) const {
  if (!is_action(op.kind)) return {};
  AttentionShare share{.layers = static_cast<int>(bytes_.work().layers[op.key.stage].count)};
  if (op.kind == OpKind::Forward) share.seconds = stretch_ * at(op).forward_attention;
  if (is_backward(op.kind)) share.seconds = stretch_ * at(op).backward_attention;
  return share;
}

double AnalyticCosts::share_of_attention(const schedule::Exchange& exchange) const {
  const Work& work = bytes_.work();
  const schedule::Key& key = exchange.of.key;
  const auto& cut = work.slices[key.micro_batch];
  const model::TokenRange& queries = cut[key.slice];
  const auto parts = model::parts_of_halves(cut, exchange.first_half, exchange.halves);
  double moved = 0;
  if (work.documents.empty()) {  // every query reads all these keys and, on average, half of its own slice's
    for (const model::SlicePart& part : parts) moved += static_cast<double>(part.length);
    return moved / (static_cast<double>(queries.begin) + static_cast<double>(queries.length) / 2);
  }
  const model::Documents& documents = work.documents[key.micro_batch];
  for (const model::SlicePart& part : parts)
    moved += model::attended_pairs(documents, queries, {cut[part.slice].begin + part.begin, part.length});
  return moved / model::attended_pairs(documents, queries, {0, queries.begin + queries.length});
}

}  // namespace penstock::sim
