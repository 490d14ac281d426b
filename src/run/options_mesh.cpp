// SPDX-License-Identifier: Apache-2.0
#include "run/options.h"

#include <algorithm>
#include <array>

#include "schedule/text.h"

namespace penstock::run {
namespace {

void describe_cuts(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  table.push_back(
      {section, "slice_unit", &options.slice_unit,
       "Slices are cut at multiples of this many tokens, and their lengths differ by at most that; 128 suits "
       "a GPU.",
       from_to(1, 1 << 20)});
  table.push_back({section, "cut", &options.cut,
                   "Slices of a micro-batch: tokens: equal length; work: equal work, by the tokens' model "
                   "FLOPs and, with data.mask = documents, by each step's documents.",
                   one_of({"tokens", "work"})});
  table.push_back(
      {section, "slice_tokens", &options.slice_tokens,
       "With packed documents: each micro-batch has as many slices of about this many tokens as its "
       "documents fill, and no padding; 0: all have seq_len tokens and the same number of slices.",
       from_to(0, kMostTokens)});
  table.push_back(
      {section, "attention_cost", &options.attention_cost,
       "Time of an attention FLOP relative to a matrix product FLOP, used to balance work by cut = work, "
       "packing = balanced and exchange of documents.",
       positive()});
}

// The costs for which greedy makes a schedule.
void describe_costs(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  const char* by_speed = "from this machine's speeds";
  table.push_back({section, "forward", &options.forward,
                   "Seconds of an F that greedy assumes: one per stage, or one for all.", not_negative(),
                   by_speed});
  table.push_back({section, "input", &options.input, "The same for an I.", not_negative(), by_speed});
  table.push_back({section, "weight", &options.weight, "The same for a W.", not_negative(), by_speed});
  table.push_back({section, "transfer", &options.transfer,
                   "Seconds from device to device that greedy assumes; needs the three keys above.",
                   not_negative(), by_speed});
  table.push_back(
      {section, "in_flight", &options.in_flight,
       "Records that a device may hold under greedy, in micro-batches, 1 or more; 0: automatic.",
       from_to(0, 1e6),
       "pp, as in 1f1b; with memory.limit, unless policy or offload is auto, as many as fit, up to 2 pp"});
}

void describe_pipelines(ParallelOptions& options, OptionTable& table) {
  const std::string_view section = "parallel";
  const Constraint devices = from_to(1, kMostDevices);
  table.push_back({section, "pp", &options.pp, "Pipeline devices.", devices});
  Constraint layers = from_to(1, kMostLayers);
  layers.choices = {"even"};
  table.push_back({section, "layers", &options.layers,
                   "Layers of each stage, as in [7, 5]; even: the same number on each, if it divides.",
                   layers, "the split whose slowest stage is fastest, counting embedding and output layer"});
  Constraint replicas = devices;
  replicas.choices = {"auto"};
  table.push_back({section, "dp", &options.dp,
                   "Data-parallel replicas of the pipeline; auto: as many as the ranks, numerics.replicas "
                   "(or else the batch), ep and shard_group allow.",
                   replicas});
  table.push_back(
      {section, "shard", &options.shard,
       "Training state sharded over the replicas: off: none; optimizer: master weights and moments; weights: "
       "also weights and gradients; auto: optimizer if there are several replicas, or weights if policy = "
       "auto fits memory.limit only with that.",
       one_of({"off", "optimizer", "weights", "auto"})});
  table.push_back({section, "shard_group", &options.shard_group,
                   "Replicas that share one copy of the states: a power of two that divides dp·cp, or all of "
                   "them. Those of a context rank come first, tp·cp ranks apart: if it divides dp, gathers "
                   "stay in a node of tp·cp·shard_group ranks; other groups hold copies.",
                   devices, "all"});
}

void describe_ranks_of_a_stage(ParallelOptions& options, OptionTable& table) {
  const std::string_view section = "parallel";
  const Constraint devices = from_to(1, kMostDevices);
  table.push_back({section, "cp", &options.cp,
                   "Context-parallel devices, which split the tokens of every slice.", devices});
  table.push_back(
      {section, "cp_mode", &options.cp_mode,
       "How they split attention: gather: keys and values go to all; query: queries go to all, and partial "
       "results return; heads: tokens are exchanged for heads; mixed: heads among some, queries among "
       "others; auto: the fastest in simulation on this machine.",
       one_of({"gather", "query", "heads", "mixed", "auto"})});
  table.push_back({section, "tp", &options.tp,
                   "Tensor-parallel devices: each has its part of the heads, ffn columns and vocabulary, and "
                   "between those its part of the tokens.",
                   devices});
  table.push_back({section, "tp_overlap", &options.tp_overlap,
                   "Overlap matrix products with the gathers before and the scatters after them."});
  table.push_back({section, "ep", &options.ep,
                   "Expert-parallel ranks, folded into tp·cp·dp: each has its part of the experts.",
                   devices});
}

}  // namespace

bool is_for_other_programs(const Option& option) {
  constexpr std::array<std::string_view, 4> kKeys{"positions", "begin_token", "end_tokens", "padding_token"};
  return option.section == "model" && std::ranges::find(kKeys, option.key) != kKeys.end();
}

bool is_of_shape(const Option& option) {
  if (option.section == "model")
    return option.key != "config" && option.key != "weights" && !is_for_other_programs(option);
  const auto is = [&](const char* key) { return option.key == key; };
  return option.section == "moe" &&
         (is("norm_topk") || is("shared_experts") || is("shared_ffn") || is("shared_gate"));
}

void describe(ParallelOptions& options, OptionTable& table) {
  describe_pipelines(options, table);
  describe_ranks_of_a_stage(options, table);
}

void describe(NumericsOptions& options, OptionTable& table) {
  table.push_back({"numerics", "replicas", &options.replicas,
                   "Groups of the batch whose gradients are added in a tree: runs without experts have the "
                   "same bits with every parallel.dp that is this divided by a power of two.",
                   from_to(1, kMostDevices), "parallel.dp"});
  table.push_back({"numerics", "tensor", &options.tensor,
                   "Parts of each layer that are computed one by one and added in a tree: runs have the same "
                   "bits with parallel.tp = 1 and every parallel.tp that is this divided by a power of two.",
                   from_to(1, kMostDevices), "parallel.tp"});
  table.push_back(
      {"numerics", "repeatable", &options.repeatable,
       "On a GPU: the bf16 attention backward adds in a fixed order, so that a run's bits repeat; false: in "
       "any order, which is faster."});
}

void describe_expert_details(model::Shape& shape, OptionTable& table) {
  const std::string_view section = "moe";
  table.push_back({section, "shared_ffn", &shape.shared_ffn, "Width of the shared expert; 0: none.",
                   from_to(0, kMostWidth)});
  table.push_back({section, "shared_gate", &shape.shared_gate,
                   "Weight the shared expert's output by the sigmoid of a per-token score."});
  table.push_back({section, "norm_topk", &shape.normalised_experts,
                   "Normalise the weights of a token's experts to sum to 1; false: their part of the softmax "
                   "over all experts."});
}

void describe(MoeOptions& options, ModelOptions& model, OptionTable& table) {
  const std::string_view section = "moe";
  table.push_back({section, "balance_coefficient", &options.balance_coefficient,
                   "Weight of the experts' load-balancing loss, which has this value at even load.",
                   not_negative()});
  table.push_back({section, "z_coefficient", &options.z_coefficient,
                   "Weight of the loss that keeps the routers' scores small.", not_negative()});
  table.push_back(
      {section, "balance_over", &options.balance_over,
       "Tokens over which load is balanced: of a micro-batch; of a step, which needs all forwards before the "
       "first backward.",
       one_of({"micro_batch", "step"})});
  table.push_back({section, "shared_experts", &model.shared_experts,
                   "Shared experts, which every token visits: one expert that is this many times as wide as "
                   "the others.",
                   from_to(0, 1024)});
  describe_expert_details(model.shape, table);
  table.push_back({section, "forced_balance", &options.forced_balance,
                   "Send tokens to the experts in turn, whatever the routers say, from the first expert in "
                   "each slice and rank, so that their rows there differ by at most one: for measurements "
                   "only."});
  table.push_back(
      {section, "rows_limit", &options.rows_limit,
       "Rows that an expert rank takes at a time; 0: all. Train supports only 0 so far, and simulate "
       "counts all rows.",
       from_to(0, 1e12)});
  table.push_back(
      {section, "skew", &options.skew,
       "Above 0: send expert e a share of each slice's and rank's tokens that falls as 1 / (e + 1)^skew, "
       "whatever the routers say: for measurements only.",
       from_to(0, 16)});
}

void describe(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  table.push_back({section, "name", &options.name, "Name of the schedule's generator.", {}, "\"slimpipe\""});
  table.push_back({section, "file", &options.file, "CSV file of a custom schedule, instead of a name."});
  table.push_back({section, "slices", &options.slices,
                   "Slices per sequence; 0: the number with the fastest simulated step.",
                   from_to(0, schedule::kMostSlices),
                   "8, or the nearest number that the sequence, chunks and group allow; 1 for unsliced "
                   "schedules"});
  table.push_back({section, "chunks", &options.chunks,
                   "Stages per device; 0: the number with the fastest simulated step.", from_to(0, 4096),
                   "the schedule's own, mostly 1"});
  table.push_back({section, "group", &options.group,
                   "Slices per group of interleaved slimpipe; 0: automatic.",
                   from_to(0, schedule::kMostSlices)});
  describe_cuts(options, table);
  table.push_back({section, "exchange", &options.exchange,
                   "Context exchange: devices with short caches compute attention for devices with long "
                   "ones.",
                   one_of({"off", "paired", "levelled", "auto"})});
  table.push_back({section, "exchange_limit", &options.exchange_limit,
                   "K,V slices that a device may send in one slot.", from_to(0, 1e9)});
  table.push_back(
      {section, "vocabulary_parallel", &options.vocabulary_parallel,
       "Shard the embedding and the output matrix over the pipeline: for slimpipe, or a file whose devices "
       "keep slots."});
  describe_costs(options, table);
}

void describe(MemoryOptions& options, OptionTable& table) {
  const std::string_view section = "memory";
  table.push_back(
      {section, "policy", &options.policy,
       "Activations kept for the backward; the rest is recomputed; auto: the cheapest policy that fits "
       "limit.",
       one_of({"none", "balanced", "balanced+fc1", "full", "auto"})});
  table.push_back({section, "keep", &options.keep,
                   "Tensors to keep, instead of a policy: layer_input and any of norm1_output, q, kv, "
                   "attention_output, norm2_input, norm2_output, dispatched, fc1, product."});
  table.push_back({section, "stages", &options.stages,
                   "Policies of single stages, as in [\"0-1: full\", \"3: layer_input+q+kv\"]; override "
                   "policy or keep."});
  table.push_back({section, "layers", &options.layers,
                   "Policies of single layers, as in [\"0-3: balanced\"]; override all of these."});
  Constraint fraction = from_to(0, 1);
  fraction.choices = {"auto"};
  table.push_back({section, "offload", &options.offload,
                   "Fraction of each record that is offloaded between its forward and its backward; auto: "
                   "the smallest that fits memory.limit, or 0.",
                   fraction});
  table.push_back({section, "offload_to", &options.offload_to,
                   "Where offloaded records go: host memory, or a file per rank.", one_of({"host", "disk"})});
  table.push_back({section, "offload_dir", &options.offload_dir,
                   "Directory of those files, in which they are not listed; empty: output.dir."});
  table.push_back({section, "limit", &options.limit,
                   "Maximum bytes per device, as in \"6 GiB\"; a run predicted to need more is refused; "
                   "empty: no limit."});
}

}  // namespace penstock::run
