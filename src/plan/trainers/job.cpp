// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/job.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/torchtitan.h"
#include "plan/trainers/torchtitan_question.h"
#include "run/description_file.h"

namespace penstock::plan {
namespace {

// Settings that some layouts have and others lack.
constexpr std::string_view kOptional[] = {"--sequence-parallel",
                                          "--num-layers-per-virtual-pipeline-stage",
                                          "--use-distributed-optimizer",
                                          "--recompute-activations",
                                          "--recompute-granularity",
                                          "--recompute-method",
                                          "--recompute-num-layers",
                                          "parallelism.fsdp_reshard_after_forward",
                                          "parallelism.pipeline_parallel_schedule",
                                          "parallelism.pipeline_parallel_layers_per_stage",
                                          "parallelism.pipeline_parallel_first_stage_less_layers",
                                          "parallelism.pipeline_parallel_last_stage_less_layers",
                                          "parallelism.pipeline_parallel_microbatch_size",
                                          "parallelism.pipeline_parallel_expert_parallel_overlap",
                                          "activation_checkpoint.selective_ac_option"};

PlanOptions options_of(const Today& today) {
  require(today.gpus >= 1, "gpus = " + std::to_string(today.gpus) + ": expected 1 or more");
  PlanOptions options;
  options.cluster.gpus = today.gpus;
  options.cluster.hardware = today.hardware;
  options.cluster.compile = false;  // unless the job asks for it (Beyond)
  options.memory.limit = today.limit;
  options.memory.offload = {0, ""};
  options.cluster.engine = today.megatron.empty() ? "torchtitan" : "megatron";
  return options;
}

Layout layout_with(const PlanOptions& options, const Beyond& beyond, const Workload& workload,
                   const Cluster& cluster) {
  Layout layout = layout_of(options, workload, cluster);
  apply(beyond, workload, layout);
  adapt(cluster, layout);
  return layout;
}

const Setting* find(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

// Settings whose value, where a job does not give it, depends on others.
bool follows_from_others(std::string_view name) {
  constexpr std::string_view kNames[] = {"--global-batch-size", "training.global_batch_size",
                                         "--recompute-num-layers",
                                         "parallelism.pipeline_parallel_layers_per_stage"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

bool recomputes_scores(const Settings& settings) {
  const Setting* granularity = find(settings, "--recompute-granularity");
  return granularity != nullptr && granularity->value == "selective";
}

MegatronArguments edited(MegatronArguments arguments, const Edit& edit) {
  for (const Setting& setting : edit.set) arguments.set(setting.name, setting.value);
  for (const std::string& name : edit.left_out) arguments.leave_out(name);
  return arguments;
}

std::vector<GivenValue> edited(std::vector<GivenValue> values, const Edit& edit) {
  const auto drop = [&](const std::string& name) {
    std::erase_if(values, [&](const GivenValue& value) { return value.name() == name; });
  };
  for (const std::string& name : edit.left_out) drop(name);
  for (const Setting& setting : edit.set) drop(setting.name);
  std::ranges::move(run::parse_values(print_torchtitan(edit.set), "the change"), std::back_inserter(values));
  return values;
}

}  // namespace

Job::Job(const Today& today) : cluster_(options_of(today)), origin_(today.origin) {
  if (today.megatron.empty()) {
    torchtitan_ = run::parse_values(today.torchtitan, today.origin);
  } else {
    megatron_.emplace(today.megatron);
  }
  Asked asked = read({});
  question_ = settled(std::move(asked.options), "");
  engine_ = question_.cluster.engine;
  apply(asked.beyond, question_.cluster.engine);
  question_.cluster.compiled = asked.beyond.compiled;
  if (!asked.beyond.model.empty()) question_.workload.model.name = asked.beyond.model;
  layout_ = layout_with(question_.options, asked.beyond, question_.workload, question_.cluster);
  not_counted_ = std::move(asked.beyond.not_counted);
  settings_ = settings_of(trainer(), question_.workload, layout_);
}

Job::Asked Job::read(const Edit& edit) const {
  Asked asked{cluster_, {}};
  asked.beyond = megatron_ ? read_megatron(edited(*megatron_, edit), asked.options)
                           : read_torchtitan(edited(torchtitan_, edit), origin_, asked.options);
  return asked;
}

Job::Read Job::with(const Edit& edit) const {
  const Asked asked = read(edit);
  Read result{question_.workload, engine_, {}};
  result.workload.global_batch = asked.options.workload.global_batch;
  apply(asked.beyond, result.engine);
  result.layout = layout_with(asked.options, asked.beyond, result.workload, question_.cluster);
  return result;
}

std::vector<Edit> Job::engine_edits() const {
  if (megatron_) return {{.set = {{"--moe-grouped-gemm", ""}}, .left_out = {}}};
  const Setting compiles{"compile.enable", "true"}, compiled{"compile.components", R"(["model", "loss"])"};
  return {{.set = {compiles}, .left_out = {}}, {.set = {compiles, compiled}, .left_out = {}}};
}

std::optional<std::string> Job::own(const std::string& name) const {
  if (megatron_) return megatron_->has(name) ? std::optional(megatron_->word(name, "")) : std::nullopt;
  const auto given = std::ranges::find(torchtitan_, name, &GivenValue::name);
  return given == torchtitan_.end() ? std::nullopt : std::optional(given->text);
}

Edit Job::edit_to(const Layout& layout) const {
  Edit edit;
  const Settings after = settings_of(trainer(), question_.workload, layout);
  for (const Setting& setting : after) {
    const std::optional<std::string> value = own(setting.name);
    const Setting* before = find(settings_, setting.name);
    const bool same = value ? *value == setting.value
                            : !follows_from_others(setting.name) && before && before->value == setting.value;
    if (!same) edit.set.push_back(setting);
  }
  for (const std::string_view name : kOptional) {
    const bool by_another_name = name == "--recompute-activations" && recomputes_scores(after);
    if (own(std::string(name)) && !find(after, name) && !by_another_name) edit.left_out.emplace_back(name);
  }
  return edit;
}

Edit Job::shortest(Edit edit) const {
  const Read asked = with(edit);
  const auto has_effect = [&](const Edit& shorter) {
    try {
      return !(with(shorter) == asked);
    } catch (const InputError&) {
      return true;
    }
  };
  // Megatron-LM refuses some combinations of these that would be read alike.
  const bool recomputes = find(edit.set, "--recompute-granularity") || find(edit.set, "--recompute-method") ||
                          std::ranges::find(edit.left_out, "--recompute-granularity") != edit.left_out.end();
  const auto stays = [&](const std::string& name) { return recomputes && name.starts_with("--recompute-"); };
  const auto shorten = [&](auto Edit::*list, auto&& name_of) {
    for (std::size_t i = (edit.*list).size(); i-- > 0;) {
      if (stays(name_of((edit.*list)[i]))) continue;
      Edit shorter = edit;
      (shorter.*list).erase((shorter.*list).begin() + static_cast<std::ptrdiff_t>(i));
      if (!has_effect(shorter)) edit = std::move(shorter);
    }
  };
  shorten(&Edit::left_out, [](const std::string& name) { return name; });
  shorten(&Edit::set, [](const Setting& setting) { return setting.name; });
  return edit;
}

std::string Job::text_of(const Edit& edit) const {
  std::vector<std::string> words;
  for (const Setting& setting : edit.set) words.push_back(word_of(trainer(), setting));
  for (const std::string& name : edit.left_out) words.push_back("without " + name);
  return join(words, ", ");
}

}  // namespace penstock::plan
