// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "base/whole.h"
#include "plan/in_flight.h"
#include "run/options.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "sim/costs/layer_cost.h"

namespace penstock::plan {
namespace {

const std::vector<std::string_view> kAnswers{"off", "on"};

void describe_cluster(PlanOptions& options, OptionTable& table) {
  table.push_back({"workload", "seq_len", &options.workload.seq_len, "Tokens per sequence.", positive()});
  table.push_back(
      {"workload", "global_batch", &options.workload.global_batch, "Sequences per step.", from_to(1, 1e9)});
  table.push_back({"workload", "expert_load", &options.workload.expert_load,
                   "Rows of the busiest expert-parallel rank divided by the mean.", at_least(1)});
  table.push_back(
      {"workload", "text", &options.workload.text, "data.text of the run files that plan writes."});
  table.push_back(
      {"cluster", "hardware", &options.cluster.hardware, "Name of a file in hardware/, or a path."});
  table.push_back(
      {"cluster", "gpus", &options.cluster.gpus, "Total number of devices.", from_to(1, 1 << 20)});
  table.push_back({"cluster", "engine", &options.cluster.engine,
                   "The trainer: penstock; megatron or torchtitan, with only what it supports; a file in "
                   "engines/, or a path."});
  table.push_back(
      {"cluster", "compile", &options.cluster.compile,
       "With engine torchtitan: the model is compiled, which fuses elementwise work (compile.enable)."});
  table.push_back({"memory", "limit", &options.memory.limit, "Maximum bytes per device, as in \"70 GB\"."});
  Constraint fraction = from_to(0, 1);
  fraction.choices = {"auto"};
  table.push_back(
      {"memory", "offload", &options.memory.offload, "Fraction of each record that is offloaded.", fraction});
}

void describe_search(PlanOptions::SearchKeys& keys, OptionTable& table) {
  const std::string_view section = "search";
  const Constraint sizes = from_to(1, 1 << 20);
  table.push_back({section, "tp", &keys.tp, "Tensor-parallel sizes; empty: all that divide.", sizes});
  table.push_back({section, "cp", &keys.cp, "Context-parallel sizes.", sizes});
  table.push_back({section, "ep", &keys.ep, "Expert-parallel sizes.", sizes});
  table.push_back({section, "pp", &keys.pp, "Pipeline sizes.", sizes});
  table.push_back({section, "chunks", &keys.chunks, "Stages per device.", sizes});
  table.push_back(
      {section, "slices", &keys.slices, "Slices per sequence.", from_to(1, schedule::kMostSlices)});
  table.push_back({section, "micro_batch", &keys.micro_batch, "Sequences per micro-batch.", sizes});
  Constraint schedules = one_of(schedule_names());
  table.push_back({section, "schedules", &keys.schedules, "Schedules; empty: all.", schedules});
  Constraint policies = one_of({model::kPolicyNames.begin() + 1, model::kPolicyNames.end()});
  table.push_back({section, "policies", &keys.policies, "Recomputation policies; empty: all.", policies});
  table.push_back({section, "vocabulary_parallel", &keys.vocabulary_parallel,
                   "Output layer sharded over the pipeline; empty: both.", one_of(kAnswers)});
  Constraint exchanges = one_of({"off", "paired", "levelled"});
  table.push_back({section, "exchanges", &keys.exchanges, "Context exchange; empty: all.", exchanges});
  table.push_back({section, "best", &keys.best, "Number of configurations to show.", from_to(1, 1000)});
  table.push_back(
      {section, "simulate", &keys.simulate,
       "Number of the fastest simulated configurations whose memory is predicted as in the trainer, and "
       "number of configurations with exchange that are simulated.",
       from_to(0, 1000)});
}

void describe_layout(PlanOptions::LayoutKeys& keys, OptionTable& table) {
  const std::string_view section = "layout";
  const Constraint sizes = from_to(1, 1 << 20);
  table.push_back(
      {section, "tp", &keys.tp, "Tensor-parallel size of the configuration that --explain explains.", sizes});
  table.push_back({section, "cp", &keys.cp, "Context-parallel size.", sizes});
  table.push_back({section, "ep", &keys.ep, "Expert-parallel size.", sizes});
  table.push_back({section, "pp", &keys.pp, "Pipeline size.", sizes});
  table.push_back({section, "dp", &keys.dp, "Data-parallel size.", sizes, "the remaining GPUs"});
  table.push_back({section, "chunks", &keys.chunks, "Stages per device.", sizes});
  table.push_back(
      {section, "slices", &keys.slices, "Slices per sequence.", from_to(1, schedule::kMostSlices)});
  table.push_back({section, "group", &keys.group,
                   "Slices per group of interleaved slimpipe; 0: the smallest.",
                   from_to(0, schedule::kMostSlices)});
  table.push_back({section, "micro_batch", &keys.micro_batch, "Sequences per micro-batch.", sizes});
  table.push_back({section, "schedule", &keys.schedule, "The schedule.", one_of(schedule_names())});
  table.push_back({section, "policy", &keys.policy, "Recomputation policy.",
                   one_of({model::kPolicyNames.begin() + 1, model::kPolicyNames.end()})});
  table.push_back({section, "vocabulary_parallel", &keys.vocabulary_parallel,
                   "Shard the output layer over the pipeline."});
  table.push_back(
      {section, "exchange", &keys.exchange, "Context exchange.", one_of({"off", "paired", "levelled"})});
}

void require_given(std::int64_t value, const char* key) {
  if (value < 1) throw InputError(std::string(key) + " is missing; it must be a positive integer");
}

// A known model fixes its sizes, so other size keys would be ignored.
void refuse_sizes_with_a_name(const PlanOptions& options) {
  PlanOptions given = options, fresh;
  OptionTable sizes, defaults;
  describe(given.model, sizes);
  describe(fresh.model, defaults);
  for (const Option& option : changed(sizes, defaults)) {
    if (option.key == "name") continue;
    throw InputError(option.name() + " = " + value_text(option) +
                     " and model.name = " + json_quote(options.model.name) + " are both given; keep one");
  }
}

// As `penstock simulate --expert-load`: a load that no layout can have would be lowered in silence.
void refuse_idle_expert_load(double load, const model::Shape& shape) {
  if (load == 1) return;
  const std::string given = "workload.expert_load = " + exact_number(load);
  if (shape.experts == 1)
    throw InputError(given + ": the model is dense; there are expert ranks only with experts");
  const double most =
      sim::greatest_load(shape, {.expert = static_cast<int>(std::min<std::int64_t>(shape.experts, 1 << 20))});
  if (load > most)
    throw InputError(given + ": expected at most " + two_digits(most, 1) +
                     ", with which one rank has all rows that its experts can get");
}

// A value that is given twice counts once: else its candidates are searched and listed twice.
template <class T>
void add_once(std::vector<T>& values, T value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

std::vector<int> as_sizes(const Integers& values) {
  std::vector<int> sizes;
  for (const auto value : values) add_once(sizes, static_cast<int>(value));
  return sizes;
}

// Refuses what the schedule's generator refuses, in its own words.
void require_by_schedule(const std::string& name, const PipelineShape& shape) {
  schedule::Request request =
      schedule::request(shape.devices, shape.micro_batches, shape.slices, shape.chunks);
  request.group = shape.group;
  on_behalf_of("[layout] is impossible", [&] { return schedule::checked_request(name, request); });
}

std::string sizes_of(const PlanOptions::LayoutKeys& keys, std::int64_t dp) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"tp", keys.tp},         {"cp", keys.cp},
      {"ep", keys.ep},         {"dp", dp},
      {"pp", keys.pp},         {"micro_batch", keys.micro_batch},
      {"slices", keys.slices}, {"chunks", keys.chunks}};
  std::string text = "schedule = " + json_quote(keys.schedule);
  for (const auto& [key, size] : sizes) text += ", " + std::string(key) + " = " + std::to_string(size);
  if (keys.group > 0) text += ", group = " + std::to_string(keys.group);
  if (keys.exchange != "off") text += ", exchange = " + json_quote(keys.exchange);
  return text;
}

}  // namespace

void describe(PlanOptions::ModelKeys& keys, OptionTable& table) {
  const std::string_view section = "model";
  model::Shape& shape = keys.shape;
  table.push_back(
      {section, "name", &keys.name, "A known model (docs/planner.md lists them), instead of its sizes."});
  table.push_back({section, "layers", &shape.layers, "Layers.", from_to(1, run::kMostLayers)});
  table.push_back({section, "hidden", &shape.hidden, "Width of the hidden state.", positive()});
  table.push_back({section, "ffn", &shape.ffn, "Width of an MLP.", positive()});
  table.push_back({section, "heads", &shape.heads, "Query heads.", positive()});
  table.push_back({section, "kv_heads", &shape.kv_heads, "Key-value heads.", positive(), "same as heads"});
  table.push_back({section, "vocab", &shape.vocab, "Tokens in the vocabulary.", positive()});
  table.push_back({section, "experts", &shape.experts, "Experts per layer; 1: a dense model.", positive()});
  table.push_back({section, "experts_per_token", &shape.experts_per_token, "Experts per token.", positive()});
  table.push_back(
      {section, "tied_embeddings", &shape.tied_embeddings, "The output matrix is the embedding."});
  run::describe_details(shape, table);
  run::describe_expert_details(shape, table);
}

void describe(PlanOptions& options, OptionTable& table) {
  describe(options.model, table);
  describe_cluster(options, table);
  describe_search(options.search, table);
  describe_layout(options.layout, table);
}

std::string options_help() {
  PlanOptions defaults;
  OptionTable table;
  describe(defaults, table);
  return print_help(table);
}

std::string options_markdown() {
  PlanOptions defaults;
  OptionTable table;
  describe(defaults, table);
  return "# The keys of a plan file\n\n"
         "Generated from the table that also drives the reader, the command line and the help. Every key can "
         "also be given on the\n"
         "command line, as `--section.key value`; `penstock plan --model NAME --gpus N --seq-len S` "
         "needs no file.\n\n" +
         print_markdown(table);
}

Workload workload_of(const PlanOptions& options) {
  Workload workload;
  if (options.model.name.empty()) {
    const std::pair<const char*, std::int64_t> sizes[] = {{"model.layers", options.model.shape.layers},
                                                          {"model.hidden", options.model.shape.hidden},
                                                          {"model.ffn", options.model.shape.ffn},
                                                          {"model.heads", options.model.shape.heads},
                                                          {"model.vocab", options.model.shape.vocab}};
    for (const auto& [key, value] : sizes) {
      if (value < 1) throw InputError(std::string(key) + " is missing; give it, or model.name");
    }
    workload.model.name = "custom";
    workload.model.shape = options.model.shape;
    if (workload.model.shape.kv_heads == 0) workload.model.shape.kv_heads = workload.model.shape.heads;
  } else {
    refuse_sizes_with_a_name(options);
    workload.model = find_model(options.model.name);
  }
  model::validate(workload.model.shape);
  require_given(options.workload.seq_len, "workload.seq_len");
  require_given(options.workload.global_batch, "workload.global_batch");
  const double tokens =
      static_cast<double>(options.workload.seq_len) * static_cast<double>(options.workload.global_batch);
  if (tokens > run::kMostStepTokens)
    throw InputError("workload.seq_len = " + std::to_string(options.workload.seq_len) +
                     " times workload.global_batch = " + std::to_string(options.workload.global_batch) +
                     " are more than 1e12 tokens a step");
  workload.seq_len = options.workload.seq_len;
  refuse_idle_expert_load(options.workload.expert_load, workload.model.shape);
  workload.expert_load = options.workload.expert_load;
  workload.global_batch = options.workload.global_batch;
  return workload;
}

Cluster cluster_of(const PlanOptions& options, const sim::Hardware& hardware, const sim::Engine& engine) {
  require_given(options.cluster.gpus, "cluster.gpus");
  Cluster cluster;
  cluster.hardware = hardware;
  cluster.gpus = options.cluster.gpus;
  cluster.engine = engine;
  const auto limit = [&] { return static_cast<double>(parse_bytes(options.memory.limit)); };
  cluster.limit =
      options.memory.limit.empty() ? hardware.usable_bytes() : on_behalf_of("memory.limit", limit);
  check_cluster(cluster);
  return cluster;
}

SearchSpace space_of(const PlanOptions& options) {
  const PlanOptions::SearchKeys& keys = options.search;
  SearchSpace space;
  space.tensor = as_sizes(keys.tp);
  space.context = as_sizes(keys.cp);
  space.expert = as_sizes(keys.ep);
  space.pipeline = as_sizes(keys.pp);
  space.chunks = as_sizes(keys.chunks);
  space.slices = as_sizes(keys.slices);
  space.micro_batch = as_sizes(keys.micro_batch);
  if (!keys.schedules.empty()) space.schedules.clear();
  for (const auto& name : keys.schedules) add_once(space.schedules, parse_schedule(name));
  if (!keys.policies.empty()) space.policies.clear();
  for (const auto& name : keys.policies) add_once(space.policies, model::parse_policy(name));
  if (!keys.vocabulary_parallel.empty()) space.vocabulary_parallel.clear();
  for (const auto& name : keys.vocabulary_parallel) add_once(space.vocabulary_parallel, name == "on");
  if (!keys.exchanges.empty()) space.exchanges.clear();
  for (const auto& name : keys.exchanges) add_once(space.exchanges, schedule::parse_exchange_mode(name));
  if (!options.memory.offload.is_auto()) space.offload = options.memory.offload.number;
  return space;
}

Layout layout_of(const PlanOptions& options, const Workload& workload, const Cluster& cluster) {
  const PlanOptions::LayoutKeys& keys = options.layout;
  const std::int64_t others = product_within(cluster.gpus, {keys.tp, keys.cp, keys.pp});
  const std::int64_t dp = keys.dp > 0 ? keys.dp : std::max<std::int64_t>(1, cluster.gpus / others);
  if (dp * others != cluster.gpus) {
    std::vector<std::string> sizes;
    for (const std::int64_t size : {keys.tp, keys.cp, keys.pp, dp}) sizes.push_back(std::to_string(size));
    throw InputError("[layout] has tp·cp·pp·dp = " + join(sizes, "·") +
                     " devices; cluster.gpus = " + std::to_string(cluster.gpus));
  }
  Layout layout;
  layout.mesh = {static_cast<int>(keys.tp), static_cast<int>(keys.cp), static_cast<int>(keys.ep),
                 static_cast<int>(dp), static_cast<int>(keys.pp)};
  layout.schedule = parse_schedule(keys.schedule);
  layout.micro_batch = static_cast<int>(keys.micro_batch);
  layout.slices = static_cast<int>(keys.slices);
  layout.chunks = static_cast<int>(keys.chunks);
  layout.group = static_cast<int>(keys.group);
  layout.keep = model::keep_of(model::parse_policy(keys.policy));
  layout.vocabulary_parallel = keys.vocabulary_parallel;
  layout.exchange = schedule::parse_exchange_mode(keys.exchange);
  if (cluster.engine.levels_layers && takes_output(layout))
    layout.output = output_in_layers(workload, layout);
  if (const auto why = reject(workload, layout, cluster.hardware.node.gpus, cluster.engine.folded_experts)) {
    if (*why == Rejection::Schedule) require_by_schedule(keys.schedule, pipeline_shape(workload, layout));
    throw InputError("[layout] is impossible: " + std::string(sentence_of(*why)) +
                     legal_values(workload, cluster.hardware.node.gpus, *why) + "; it has " +
                     sizes_of(keys, dp));
  }
  return layout;
}

}  // namespace penstock::plan
