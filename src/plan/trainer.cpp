// SPDX-License-Identifier: Apache-2.0
#include "plan/trainer.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::plan {
namespace {

using model::Policy;

// Logits, per number. Megatron-LM: in bf16, in f32, which the softmax and the gradient overwrite, and the
// gradient in bf16. torch.nn.functional.cross_entropy of logits cast to f32: three arrays in f32 at the
// beginning of its backward; four over tensor ranks (PyTorch 2.11, torch/distributed/tensor/parallel/loss.py,
// _nll_loss_and_log_softmax_backward), whose output layer has a gathered input. Attention is FlashAttention's
// or cuDNN's, which sum in any order.
constexpr MemoryHabits kOfMegatron{
    .logit_bytes = 8, .cut_logit_bytes = 8, .repeatable_attention = false, .two_tied_gradients = false};
constexpr MemoryHabits kOfTorch{.logit_bytes = 12,
                                .cut_logit_bytes = 16,
                                .whole_output_input = true,
                                .repeatable_attention = false,
                                .two_tied_gradients = false};

const Trainer kTrainers[] = {
    // Megatron asserts more than two pipeline ranks for interleaving.
    {.name = "megatron",
     .engine = "megatron-2025",
     .version = "Megatron-LM 307dcf37 (megatron/training/arguments.py)",
     .schedules = {ScheduleKind::OneFOneB, ScheduleKind::Interleaved},
     .policies = {Policy::None, Policy::Full},
     .least_looped_devices = 3,
     .experts_within_replicas = true,
     .habits = kOfMegatron},
    {.name = "torchtitan",
     .engine = "fsdp2",
     .version = "torchtitan 0.2.2 (torchtitan/config/job_config.py)",
     .schedules = {ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::GPipe, ScheduleKind::ZbV,
                   ScheduleKind::DualPipeV},
     .policies = {Policy::None, Policy::Full},
     .shards_weights = true,
     .needs_replicas = true,
     .pairs_tokens = true,
     .pipelines_head_norms = false,
     .cuts_experts = false,
     .recomputes_products = true,
     .reserved = 1.23,
     .compiles = true,
     .habits = kOfTorch}};

template <class Value>
std::string names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  return join(names, ", ");
}

template <class Value>
bool has(const std::vector<Value>& values, const Value& value) {
  return std::ranges::find(values, value) != values.end();
}

[[noreturn]] void refuse_lack(const Trainer& trainer, const std::string& key, std::string_view value,
                              const std::string& valid) {
  throw InputError(key + ": " + std::string(trainer.name) + " does not support " + std::string(value) +
                   "; expected " + valid);
}

void require_whole(const Trainer& trainer, const std::string& key, std::int64_t slices) {
  if (slices != 1) refuse_lack(trainer, key, std::to_string(slices) + " slices", "whole sequences: 1");
}

void require_no_exchange(const Trainer& trainer, const std::string& key, const std::string& exchange) {
  if (exchange != "off") refuse_lack(trainer, key, exchange, "off");
}

void restrict_to(const Trainer& trainer, SearchSpace& space, const PlanOptions::SearchKeys& asked) {
  for (const ScheduleKind kind : space.schedules) {
    if (!asked.schedules.empty() && !has(trainer.schedules, kind))
      refuse_lack(trainer, "search.schedules", name_of(kind), names_of(trainer.schedules));
  }
  for (const Policy policy : space.policies) {
    if (!asked.policies.empty() && !has(trainer.policies, policy))
      refuse_lack(trainer, "search.policies", model::name_of(policy), names_of(trainer.policies));
  }
  if (asked.schedules.empty()) space.schedules = trainer.schedules;
  if (asked.policies.empty()) space.policies = trainer.policies;
  for (const std::int64_t slices : asked.slices) require_whole(trainer, "search.slices", slices);
  if (has(asked.vocabulary_parallel, std::string("on")))
    refuse_lack(trainer, "search.vocabulary_parallel", "it", "off");
  for (const std::string& exchange : asked.exchanges)
    require_no_exchange(trainer, "search.exchanges", exchange);
}

std::optional<std::string> refusal_of_mesh(const Trainer& trainer, const Workload& workload,
                                           const mesh::Mesh& mesh) {
  const model::Shape& shape = workload.model.shape;
  if (shape.kv_heads % mesh.tensor != 0)
    return std::to_string(shape.kv_heads) + " key-value heads are not divisible by " +
           std::to_string(mesh.tensor) + " tensor ranks";
  if (mesh.pipeline > 1 && shape.head_norms && !trainer.pipelines_head_norms)
    return "Pipeline Parallel is enabled but qwen3 does not support pipelining";
  if (trainer.pairs_tokens && workload.seq_len % (2LL * mesh.tensor * mesh.context) != 0)
    return "the sequence is not divisible by 2·t·c";
  // With one expert rank, tensor ranks do split the experts, as they do the dense weights.
  if (shape.experts > 1 && mesh.tensor > 1 && mesh.expert == 1 && !trainer.cuts_experts)
    return "experts split over tensor ranks are not predicted";
  if (trainer.experts_within_replicas && mesh.replicas() % mesh.expert != 0)
    return "data times context parallel size (" + std::to_string(mesh.replicas()) +
           ") is not divisible by expert parallel size (" + std::to_string(mesh.expert) + ")";
  return {};
}

void refuse_offloading(const Trainer& trainer, const PlanOptions& options) {
  if (!options.memory.offload.is_auto() && options.memory.offload.number > 0)
    throw InputError("memory.offload = " + number(options.memory.offload.number, 2) + ": " +
                     std::string(trainer.name) + " is planned without offloading; expected 0 or auto");
}

// A split with end weights is written as layers per stage, unless the stages per device are the schedule's
// default.
std::optional<std::string> refusal_of_ends(const Workload& workload, const Layout& layout) {
  const EndWeights ends = *layout.ends;
  const std::int64_t stages = stages_of(layout), all = workload.model.shape.layers + ends.first + ends.last;
  if (all / stages <= std::max(ends.first, ends.last))
    return std::to_string(stages) + " stages leave an end of the pipeline without layers";
  const bool looped = layout.schedule != ScheduleKind::OneFOneB && layout.schedule != ScheduleKind::GPipe;
  const std::int64_t each = ceil_div(all, stages);
  if (layout.chunks != (looped ? 2 : 1) && ceil_div(all, each) != stages)
    return "no number of layers per stage makes " + std::to_string(stages) + " stages";
  return {};
}

}  // namespace

const Trainer* find_trainer(std::string_view name) {
  const auto* found = std::ranges::find(kTrainers, name, &Trainer::name);
  return found == std::end(kTrainers) ? nullptr : found;
}

SearchSpace space_for(const Trainer& trainer, const PlanOptions& options) {
  SearchSpace space = space_of(options);
  restrict_to(trainer, space, options.search);
  refuse_offloading(trainer, options);
  space.slices = {1};
  space.vocabulary_parallel = {false};
  space.exchanges = {ExchangeMode::Off};
  space.offload = 0;
  space.parts = options.search.policies.empty();
  return space;
}

void require_within(const Trainer& trainer, const PlanOptions& options) {
  const PlanOptions::LayoutKeys& asked = options.layout;
  if (!has(trainer.schedules, parse_schedule(asked.schedule)))
    refuse_lack(
        trainer, "layout.schedule",
        asked.schedule + (asked.schedule == PlanOptions::LayoutKeys().schedule ? ", the default" : ""),
        names_of(trainer.schedules));
  if (!has(trainer.policies, model::parse_policy(asked.policy)))
    refuse_lack(trainer, "layout.policy", asked.policy, names_of(trainer.policies));
  require_whole(trainer, "layout.slices", asked.slices);
  if (asked.vocabulary_parallel) refuse_lack(trainer, "layout.vocabulary_parallel", "it", "off");
  require_no_exchange(trainer, "layout.exchange", asked.exchange);
  refuse_offloading(trainer, options);
}

void set_trainer(Cluster& cluster, const Trainer& trainer, bool compile) {
  cluster.trainer = &trainer;
  cluster.compiled = compile && trainer.compiles;
  if (cluster.compiled) cluster.engine.fuse_elementwise();
  cluster.engine.folded_experts = !trainer.cuts_experts;
}

void adapt(const sim::Engine& engine, Layout& layout) {
  layout.cut_experts = !engine.folded_experts;
  if (!engine.shards_optimizer && !layout.sharded.on) layout.sharded.group = 1;
}

void adapt(const Cluster& cluster, Layout& layout) {
  adapt(cluster.engine, layout);
  if (cluster.trainer == nullptr) return;
  layout.output = 0;
  if (!cluster.trainer->shards_weights) return;
  ShardedWeights& sharded = layout.sharded;
  const bool pipeline = layout.mesh.pipeline > 1;
  sharded.on = layout.mesh.replicas() > 1;
  sharded.regathers = sharded.asked.value_or(!pipeline);
  sharded.stays = pipeline && !sharded.regathers;  // from the first forward to the last backward
}

std::optional<std::string> refusal_of(const Trainer& trainer, const Workload& workload,
                                      const Layout& layout) {
  if (!has(trainer.schedules, layout.schedule))
    return std::string(name_of(layout.schedule)) + " is not a schedule of " + std::string(trainer.name) +
           ", which has " + names_of(trainer.schedules);
  if (auto why = refusal_of_mesh(trainer, workload, layout.mesh)) return why;
  const std::int64_t layers = workload.model.shape.layers, stages = stages_of(layout);
  if (trainer.needs_replicas && layout.mesh.replicas() == 1 && layout.mesh.world() > 1)
    return "mixed precision with tensor or pipeline ranks only: " + std::string(trainer.name) +
           " trains in f32 unless data or context ranks shard the weights";
  if (trainer.shards_weights && layout.sharded.group == 1 && layout.mesh.replicas() > 1)
    return "replicas that each hold all weights are DDP, which is not predicted";
  if (layout.ends && layout.mesh.pipeline > 1) {
    if (const auto why = refusal_of_ends(workload, layout)) return why;
  } else if (layers % stages != 0) {
    return std::to_string(layers) + " layers are not divisible by " + std::to_string(stages) + " stages";
  }
  if (layout.chunks > 1 && layout.mesh.pipeline < trainer.least_looped_devices)
    return "several stages a device need " + std::to_string(trainer.least_looped_devices) +
           " pipeline ranks or more";
  if (layout.schedule == ScheduleKind::Interleaved &&
      micro_batches(workload, layout) % layout.mesh.pipeline != 0)
    return std::to_string(micro_batches(workload, layout)) + " micro-batches are not divisible by " +
           std::to_string(layout.mesh.pipeline) + " pipeline ranks";
  if (layout.schedule == ScheduleKind::DualPipeV && micro_batches(workload, layout) < stages)
    return std::to_string(micro_batches(workload, layout)) + " micro-batches are fewer than the " +
           std::to_string(stages) + " stages; DualPipeV needs at least as many";
  return {};
}

}  // namespace penstock::plan
