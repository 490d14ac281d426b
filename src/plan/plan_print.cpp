// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_print.h"

#include <algorithm>

#include "base/columns.h"
#include "base/text.h"
#include "plan/trainer_choices.h"

namespace penstock::plan {
namespace {

std::vector<std::string> row_of(const Plan& plan, const Candidate& candidate) {
  const Seconds step = candidate.step();
  const auto& memory = candidate.memory;
  return {print_layout(candidate.layout),
          two_digits(step, 2),
          candidate.simulated ? "sim" : "",
          number(tokens_per_second_per_gpu(plan.workload, plan.cluster, step), 0),
          percent(model_flops_utilization(plan.workload, plan.cluster, step)),
          gigabytes(as_double(memory.fullest.total()), 1),
          gigabytes(as_double(memory.host), 1),
          percent(candidate.bubble_fraction()),
          std::string(largest_overhead(candidate.cost).first)};
}

std::string print_candidates(const Plan& plan, const std::vector<Candidate>& candidates) {
  Rows rows{{"", "step s", "", "tok/s/GPU", "MFU", "GB", "host GB", "bubble", "largest overhead"}};
  for (const Candidate& candidate : candidates) rows.push_back(row_of(plan, candidate));
  return columns(rows, "lrrrrrrrl");
}

// 0 without a search.
double per_second(std::int64_t candidates, const SearchResult& result) {
  return result.seconds > 0 ? static_cast<double>(candidates) / result.seconds : 0;
}

std::string print_rejections(const SearchResult& result) {
  Rows rows;
  for (std::size_t i = 0; i < kRejections; ++i) {
    if (result.rejected[i] == 0) continue;
    const auto why = static_cast<Rejection>(i);
    rows.push_back({"", std::to_string(result.rejected[i]), std::string(sentence_of(why))});
  }
  return columns(rows, "lrl");
}

// What only layouts for other trainers choose.
std::string json_choices(const Layout& layout) {
  std::string text;
  if (layout.recomputed < 1)
    text += ",\"policy_share\":" + exact_number(layout.recomputed) +
            ",\"other_policy\":" + json_quote(model::policy_text(layout.others));
  const ShardedWeights& sharded = layout.sharded;
  if (!sharded.on) return text;
  const std::int64_t group = sharded.group > 0 ? sharded.group : layout.mesh.replicas();
  return text + ",\"shard_group\":" + std::to_string(group) +
         ",\"reshard_after_forward\":" + (sharded.regathers ? "true" : "false");
}

std::string json_layout(const Layout& layout) {
  return "\"tp\":" + std::to_string(layout.mesh.tensor) + ",\"cp\":" + std::to_string(layout.mesh.context) +
         ",\"ep\":" + std::to_string(layout.mesh.expert) + ",\"pp\":" + std::to_string(layout.mesh.pipeline) +
         ",\"dp\":" + std::to_string(layout.mesh.data) + ",\"chunks\":" + std::to_string(layout.chunks) +
         ",\"slices\":" + std::to_string(layout.slices) + ",\"group\":" + std::to_string(layout.group) +
         ",\"micro_batch\":" + std::to_string(layout.micro_batch) +
         ",\"schedule\":" + json_quote(name_of(layout.schedule)) +
         ",\"policy\":" + json_quote(model::policy_text(layout.keep)) + json_choices(layout) +
         ",\"offload_ratio\":" + exact_number(layout.offload) +
         ",\"vocabulary_parallel\":" + (layout.vocabulary_parallel ? "true" : "false") +
         ",\"exchange\":" + json_quote(name_of(layout.exchange));
}

std::string json_candidate(const Plan& plan, const Candidate& candidate) {
  const Seconds step = candidate.step();
  std::vector<std::string> terms, memory;
  for (const auto& [name, seconds] : terms_of(candidate.cost)) {
    terms.push_back(json_quote(name) + ":" + exact_number(seconds));
  }
  for (const auto& [name, bytes] : model::categories(candidate.memory.fullest)) {
    memory.push_back(json_quote(name) + ":" + std::to_string(bytes));
  }
  return "{" + json_layout(candidate.layout) + ",\"fits\":" + (candidate.memory.fits ? "true" : "false") +
         ",\"step_s\":" + exact_number(step) + ",\"closed_form_s\":" + exact_number(candidate.cost.total()) +
         ",\"simulated\":" + (candidate.simulated ? "true" : "false") + ",\"tokens_per_s_per_gpu\":" +
         exact_number(tokens_per_second_per_gpu(plan.workload, plan.cluster, step)) +
         ",\"mfu\":" + exact_number(model_flops_utilization(plan.workload, plan.cluster, step)) +
         ",\"bubble_fraction\":" + exact_number(candidate.bubble_fraction()) +
         ",\"peak_bytes\":" + std::to_string(candidate.memory.fullest.total()) +
         ",\"host_bytes\":" + std::to_string(candidate.memory.host) + ",\"terms_s\":{" + join(terms, ",") +
         "},\"memory_bytes\":{" + join(memory, ",") + "}}";
}

// Only where nothing fits.
std::string json_miss(const Plan& plan) {
  if (!plan.result.best.empty() || !plan.result.nearest_miss) return "";
  return ",\"nearest_miss\":" + json_candidate(plan, *plan.result.nearest_miss);
}

std::string json_list(const Plan& plan, const std::vector<Candidate>& candidates) {
  std::vector<std::string> list;
  for (const Candidate& candidate : candidates) list.push_back(json_candidate(plan, candidate));
  return "[" + join(list, ",") + "]";
}

// Of a memory.limit above what the device has.
std::string beside_limit(const Cluster& cluster) {
  const double memory = cluster.hardware.device.memory_gb * 1e9;
  return cluster.limit > memory ? " (it has " + gigabytes(memory, 1) + ")" : "";
}

// Parts of the layers that other trainers recompute are shares; 0 of them is what the others keep.
std::string print_policy(const Layout& layout) {
  if (layout.recompute_scores) return "scores";
  if (layout.recomputed == 0) return model::policy_text(layout.others);
  if (recomputes_every_second_product(layout)) return "every 2nd product";
  const std::string text = model::policy_text(layout.keep);
  return layout.recomputed < 1 ? text + " in " + percent(layout.recomputed) : text;
}

// What is not the trainer's default.
std::string print_sharding(const Layout& layout) {
  const ShardedWeights& sharded = layout.sharded;
  if (!sharded.on) return "";
  std::string text;
  if (sharded.group > 0) text += " shard" + std::to_string(sharded.group);
  if (sharded.asked) text += *sharded.asked ? " reshard" : " no-reshard";
  return text;
}

}  // namespace

std::string gigabytes(double bytes, int decimals) { return two_digits(bytes / 1e9, decimals); }

std::string print_layout(const Layout& layout) {
  std::string text = print_mesh(layout.mesh) + " " + std::string(name_of(layout.schedule));
  if (layout.slices > 1) text += " n" + std::to_string(layout.slices);
  if (layout.chunks > 1) text += " v" + std::to_string(layout.chunks);
  if (layout.group > 0) text += " g" + std::to_string(layout.group);
  if (layout.micro_batch > 1) text += " b" + std::to_string(layout.micro_batch);
  text += " " + print_policy(layout) + print_sharding(layout);
  if (layout.offload > 0) text += " offload " + number(100 * layout.offload, 0) + "%";
  if (layout.vocabulary_parallel) text += " vocab";
  if (layout.exchange != ExchangeMode::Off) text += " " + std::string(name_of(layout.exchange));
  return text;
}

std::pair<std::string_view, Seconds> largest_overhead(const StepCost& cost) {
  const auto terms = terms_of(cost);  // the first two, products and attention, are no overhead
  return *std::max_element(terms.begin() + 2, terms.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

std::string print_question(const Plan& plan) {
  return std::string(plan.workload.model.name) + ", " + counted(plan.workload.global_batch, "sequence") +
         " of " + std::to_string(plan.workload.seq_len) + " tokens on " + std::to_string(plan.cluster.gpus) +
         " " + printable(plan.cluster.hardware.device.name) + ", " + gigabytes(plan.cluster.limit, 1) +
         " GB a device" + beside_limit(plan.cluster) + ", engine " + printable(plan.cluster.engine.name) +
         (plan.cluster.compiled ? ", compiled" : "");
}

std::string print_plan(const Plan& plan) {
  const SearchResult& result = plan.result;
  std::string text = print_question(plan) + "\n\n" + print_candidates(plan, result.best);
  text +=
      "\nMFU: 6·(N − N_input_embedding) + 6·L·H·d·s FLOPs a token (causal half of attention; of experts "
      "those it visits) of the " +
      plan.cluster.hardware.device.peak +
      " peak. sim: simulated, which are listed first; else in closed form.\n";
  if (!result.best.empty())
    text += "\nThe first, term by term\n" +
            explain(plan.workload, plan.cluster, result.best[0], /*ends_only=*/true);
  text += "\nLeast time by memory (Pareto), in closed form\n" + print_candidates(plan, result.pareto);
  if (const std::string rejections = print_rejections(result); !rejections.empty())
    text += "\nRejected\n" + rejections;
  text += "\n" + std::to_string(result.candidates) + " candidates, " + std::to_string(result.judged()) +
          " judged by memory, " + std::to_string(result.fitting()) + " fit and are timed; " +
          number(result.seconds, 3) + " s, " + number(per_second(result.judged(), result), 0) + " judged/s\n";
  return text;
}

std::string print_plan_json(const Plan& plan) {
  const SearchResult& result = plan.result;
  std::vector<std::string> rejected;
  for (std::size_t i = 0; i < kRejections; ++i) {
    rejected.push_back(json_quote(name_of(static_cast<Rejection>(i))) + ":" +
                       std::to_string(result.rejected[i]));
  }
  return "{\"candidates\":" + std::to_string(result.candidates) +
         ",\"judged\":" + std::to_string(result.judged()) +
         ",\"fitting\":" + std::to_string(result.fitting()) + ",\"rejected\":{" + join(rejected, ",") +
         "},\"best\":" + json_list(plan, result.best) + json_miss(plan) +
         ",\"pareto\":" + json_list(plan, result.pareto) + ",\"search_s\":" + exact_number(result.seconds) +
         ",\"candidates_per_s\":" + exact_number(per_second(result.candidates, result)) + "}\n";
}

}  // namespace penstock::plan
