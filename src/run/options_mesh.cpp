// SPDX-License-Identifier: Apache-2.0
#include "run/options.h"

#include "schedule/text.h"

namespace penstock::run {
namespace {

void describe_cuts(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  table.push_back(
      {section, "slice_unit", &options.slice_unit,
       "Slices are cut at multiples of so many tokens, and differ by at most that; 128 suits a GPU.",
       from_to(1, 1 << 20)});
  table.push_back({section, "cut", &options.cut,
                   "Slices of a micro-batch: tokens: equally long; work: of equal work, by the tokens' model "
                   "FLOPs and, with data.mask = documents, by each step's documents.",
                   one_of({"tokens", "work"})});
  table.push_back(
      {section, "slice_tokens", &options.slice_tokens,
       "With packed documents: each micro-batch has as many slices of about so many tokens as its "
       "documents fill, and no padding; 0: all have seq_len tokens and as many slices.",
       from_to(0, kMostTokens)});
  table.push_back(
      {section, "attention_cost", &options.attention_cost,
       "How many times as long a FLOP of attention takes as one of a product, where work is shared "
       "out: by cut = work, by packing = balanced, and by exchange of documents.",
       positive()});
}

// The costs for which greedy makes a schedule.
void describe_costs(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  const char* by_speed = "by this machine's speeds";
  table.push_back({section, "forward", &options.forward,
                   "greedy is made for these seconds of an F, one for each stage or one for all.",
                   not_negative(), by_speed});
  table.push_back({section, "input", &options.input, "The same of an I.", not_negative(), by_speed});
  table.push_back({section, "weight", &options.weight, "The same of a W.", not_negative(), by_speed});
  table.push_back({section, "transfer", &options.transfer,
                   "Seconds from device to device that greedy is made for, given together with these.",
                   not_negative(), by_speed});
  table.push_back(
      {section, "in_flight", &options.in_flight,
       "Micro-batches' worth of records that a device may hold under greedy, 1 or more; 0: automatic.",
       from_to(0, 1e6),
       "as 1f1b: pp; with memory.limit, unless policy or offload is auto, the most up to 2 pp that fit"});
}

}  // namespace

bool is_of_shape(const Option& option) {
  if (option.section == "model") return option.key != "config" && option.key != "weights";
  const auto is = [&](const char* key) { return option.key == key; };
  return option.section == "moe" &&
         (is("norm_topk") || is("shared_experts") || is("shared_ffn") || is("shared_gate"));
}

void describe(ParallelOptions& options, OptionTable& table) {
  const std::string_view section = "parallel";
  const Constraint devices = from_to(1, kMostDevices);
  table.push_back({section, "pp", &options.pp, "Pipeline devices.", devices});
  Constraint layers = from_to(1, kMostLayers);
  layers.choices = {"even"};
  table.push_back({section, "layers", &options.layers,
                   "Layers of each stage, as in [7, 5]; even: as many on each, if they divide.", layers,
                   "the least greatest time of a stage, weighing embedding and output layer"});
  Constraint replicas = devices;
  replicas.choices = {"auto"};
  table.push_back({section, "dp", &options.dp,
                   "Data-parallel replicas of the pipeline; auto: the most that the ranks there, "
                   "numerics.replicas (or else "
                   "the batch), ep and shard_group allow.",
                   replicas});
  table.push_back(
      {section, "shard", &options.shard,
       "What a replica keeps of the training state: off: everything; optimizer: masters and moments of its "
       "share; weights: also weights and gradients of its share; auto: optimizer if there are several, or "
       "weights where policy = auto fits memory.limit with nothing less.",
       one_of({"off", "optimizer", "weights", "auto"})});
  table.push_back(
      {section, "shard_group", &options.shard_group,
       "Replicas that share one set of states, those of a context rank first, tp·cp ranks apart: "
       "where it divides dp, gathers stay in a node of tp·cp·shard_group ranks; the others hold copies.",
       devices, "all"});
  table.push_back({section, "cp", &options.cp,
                   "Context-parallel devices, which share out the tokens of every slice.", devices});
  table.push_back(
      {section, "cp_mode", &options.cp_mode,
       "How they attend together: gather: keys and values go to all; query: queries do, and their "
       "partial results back; heads: tokens are exchanged for heads; mixed: heads among some, "
       "queries among others; auto: the fastest in simulation on this machine.",
       one_of({"gather", "query", "heads", "mixed", "auto"})});
  table.push_back({section, "tp", &options.tp,
                   "Tensor-parallel devices: each has its part of the heads, ffn columns and vocabulary, and "
                   "of the tokens between them.",
                   devices});
  table.push_back({section,
                   "tp_overlap",
                   &options.tp_overlap,
                   "Gathers before products and scatters behind them run while what is there is multiplied.",
                   {}});
  table.push_back({section, "ep", &options.ep,
                   "Expert-parallel ranks, folded into tp·cp·dp: each has its part of the experts.",
                   devices});
}

void describe(NumericsOptions& options, OptionTable& table) {
  table.push_back({"numerics", "replicas", &options.replicas,
                   "Groups of the batch whose gradients are added in a tree: runs without experts have the "
                   "same bits with any parallel.dp that this is a power of two times of.",
                   from_to(1, kMostDevices), "parallel.dp"});
  table.push_back({"numerics", "tensor", &options.tensor,
                   "Parts of each layer that are computed one by one and added in a tree: runs with any "
                   "parallel.tp that this is a power of two times of, and with 1, have the same bits.",
                   from_to(1, kMostDevices), "parallel.tp"});
  table.push_back(
      {"numerics",
       "repeatable",
       &options.repeatable,
       "On a card: attention's backward in bf16 adds in a fixed order, so that a run's bits repeat; "
       "false: in any order, which is faster.",
       {}});
}

void describe_expert_details(model::Shape& shape, OptionTable& table) {
  const std::string_view section = "moe";
  table.push_back({section, "shared_ffn", &shape.shared_ffn, "The width of the shared expert; 0: none.",
                   from_to(0, kMostWidth)});
  table.push_back({section, "shared_gate", &shape.shared_gate,
                   "The shared expert's output is weighed by a sigmoid of a score of the token."});
  table.push_back({section, "norm_topk", &shape.normalised_experts,
                   "The weights of a token's experts sum to 1; else they are shares of all experts'."});
}

void describe(MoeOptions& options, ModelOptions& model, OptionTable& table) {
  const std::string_view section = "moe";
  table.push_back({section, "balance_coefficient", &options.balance_coefficient,
                   "Weight of the loss that evens the experts' load out; it is its value when they are even.",
                   not_negative()});
  table.push_back({section, "z_coefficient", &options.z_coefficient,
                   "Weight of the loss that keeps the routers' scores small.", not_negative()});
  table.push_back(
      {section, "balance_over", &options.balance_over,
       "The tokens whose load is evened out: of a micro-batch; of a step, where all forwards come "
       "before the first backward.",
       one_of({"micro_batch", "step"})});
  table.push_back({section, "shared_experts", &model.shared_experts,
                   "Experts that every token visits, as one that is so many times as wide as the others.",
                   from_to(0, 1024)});
  describe_expert_details(model.shape, table);
  table.push_back({section,
                   "forced_balance",
                   &options.forced_balance,
                   "Send tokens to the experts in turn, whatever the routers say, in each slice and rank "
                   "from the first expert on, so that their rows there differ by one at most: for "
                   "measurements alone.",
                   {}});
  table.push_back({section, "rows_limit", &options.rows_limit,
                   "Rows that an expert rank takes at a time; 0: all. Train has no others yet.",
                   from_to(0, 1e12)});
  table.push_back(
      {section, "skew", &options.skew,
       "Above 0: send expert e a share of the tokens that falls as 1 / (e + 1)^skew, whatever the "
       "routers say: for measurements alone.",
       from_to(0, 16)});
}

void describe(ScheduleOptions& options, OptionTable& table) {
  const std::string_view section = "schedule";
  table.push_back(
      {section, "name", &options.name, "The schedule, by its generator's name.", {}, "\"slimpipe\""});
  table.push_back(
      {section, "file", &options.file, "A schedule of one's own in CSV form, instead of a name."});
  table.push_back({section, "slices", &options.slices,
                   "Slices of each sequence; 0: as many as make a simulated step fastest.",
                   from_to(0, schedule::kMostSlices),
                   "8, or the nearest that the sequence, chunks and group allow; 1 for unsliced schedules"});
  table.push_back({section, "chunks", &options.chunks,
                   "Stages per device; 0: as many as make a simulated step fastest.", from_to(0, 4096),
                   "the schedule's own, mostly 1"});
  table.push_back({section, "group", &options.group,
                   "Slices per group of interleaved slimpipe; 0: automatic.",
                   from_to(0, schedule::kMostSlices)});
  describe_cuts(options, table);
  table.push_back({section, "exchange", &options.exchange,
                   "Attention context exchange: devices with short caches attend for those with long ones.",
                   one_of({"off", "paired", "levelled", "auto"})});
  table.push_back({section, "exchange_limit", &options.exchange_limit,
                   "K,V slices that a device may send in one slot.", from_to(0, 1e9)});
  table.push_back(
      {section,
       "vocabulary_parallel",
       &options.vocabulary_parallel,
       "Shard the embedding and the output matrix over the pipeline: of slimpipe, or a file whose "
       "devices keep slots.",
       {}});
  describe_costs(options, table);
}

void describe(MemoryOptions& options, OptionTable& table) {
  const std::string_view section = "memory";
  table.push_back(
      {section, "policy", &options.policy,
       "What is kept for the backward, the rest is recomputed; auto: the cheapest that fits in limit.",
       one_of({"none", "balanced", "balanced+fc1", "full", "auto"})});
  table.push_back({section,
                   "keep",
                   &options.keep,
                   "The tensors to keep instead of a policy, layer_input and any of norm1_output, q, kv, "
                   "attention_output, norm2_input, norm2_output, dispatched, fc1, product.",
                   {}});
  table.push_back(
      {section,
       "stages",
       &options.stages,
       "Other policies of some stages, as in [\"0-1: full\", \"3: layer_input+q+kv\"], over policy "
       "or keep.",
       {}});
  table.push_back({section,
                   "layers",
                   &options.layers,
                   "Other policies of some layers, as in [\"0-3: balanced\"], over all of these.",
                   {}});
  Constraint fraction = from_to(0, 1);
  fraction.choices = {"auto"};
  table.push_back({section, "offload", &options.offload,
                   "Fraction of each record that is off its device between its forward and its backward; "
                   "auto: the least that fits memory.limit, or 0.",
                   fraction});
  table.push_back({section, "offload_to", &options.offload_to,
                   "Where offloaded records go: the host's memory, or a file of each rank.",
                   one_of({"host", "disk"})});
  table.push_back({section,
                   "offload_dir",
                   &options.offload_dir,
                   "Directory of those files, which have no names there; empty: output.dir.",
                   {}});
  table.push_back({section,
                   "limit",
                   &options.limit,
                   "Most bytes per device, as in \"6 GiB\"; a run that is predicted to need more is refused; "
                   "empty: none.",
                   {}});
}

}  // namespace penstock::run
