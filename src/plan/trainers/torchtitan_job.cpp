// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/torchtitan_job.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

constexpr double kMost = 1 << 24;  // far above any size; products of two do not overflow

OptionTable describe(TitanJob& job) {
  OptionTable table;
  const Constraint sizes = from_to(1, kMost), less = from_to(0, kMost);
  const auto add = [&](std::string_view section, std::string_view key, Target target,
                       Constraint constraint = {}) {
    table.push_back({section, key, target, "", std::move(constraint)});
  };
  add("model", "name", &job.model);
  add("model", "flavor", &job.flavor);
  add("training", "local_batch_size", &job.local_batch, sizes);
  add("training", "global_batch_size", &job.global_batch, from_to(-1, kMost));
  add("training", "seq_len", &job.seq_len, sizes);
  add("parallelism", "data_parallel_replicate_degree", &job.replicate, sizes);
  add("parallelism", "data_parallel_shard_degree", &job.shard, from_to(-1, kMost));
  add("parallelism", "fsdp_reshard_after_forward", &job.reshard, one_of({"default", "always", "never"}));
  add("parallelism", "tensor_parallel_degree", &job.tp, sizes);
  add("parallelism", "pipeline_parallel_degree", &job.pp, sizes);
  add("parallelism", "pipeline_parallel_schedule", &job.schedule);
  add("parallelism", "pipeline_parallel_layers_per_stage", &job.layers_per_stage, sizes);
  add("parallelism", "pipeline_parallel_first_stage_less_layers", &job.first_less, less);
  add("parallelism", "pipeline_parallel_last_stage_less_layers", &job.last_less, less);
  add("parallelism", "pipeline_parallel_microbatch_size", &job.micro_batch, sizes);
  add("parallelism", "context_parallel_degree", &job.cp, sizes);
  add("parallelism", "expert_parallel_degree", &job.ep, sizes);
  add("parallelism", "expert_tensor_parallel_degree", &job.expert_tp, sizes);
  add("parallelism", "pipeline_parallel_expert_parallel_overlap", &job.overlaps_experts);
  add("activation_checkpoint", "mode", &job.recomputation);
  add("activation_checkpoint", "selective_ac_option", &job.selective);
  add("compile", "enable", &job.compiles);
  add("compile", "components", &job.compiled);
  return table;
}

struct Fixed {
  std::string values;  // as TOML; several are separated by spaces
  std::string_view brings;
};

struct UnreadKeys {
  std::vector<std::string> idle;
  std::map<std::string, Fixed> fixed;
};

const UnreadKeys& unread_keys() {
  static const UnreadKeys unread = [] {
    UnreadKeys keys;
    const auto idle = [&](const std::string& section, std::initializer_list<const char*> names) {
      for (const char* name : names) keys.idle.push_back(section + "." + name);
    };
#define IDLE(section, ...) idle(section, {__VA_ARGS__});
#define FIXED(name, values, brings) keys.fixed[name] = {values, brings};
#include "plan/trainers/torchtitan_keys.inc"
#undef IDLE
#undef FIXED
    return keys;
  }();
  return unread;
}

// Returns whether the job has the mesh or mode that the key is about.
bool matters(const std::string& name, const TitanJob& job) {
  if (name == "parallelism.disable_loss_parallel" || name == "parallelism.enable_async_tensor_parallel")
    return job.tp > 1;
  if (name == "parallelism.module_fqns_per_model_part" ||
      name == "parallelism.pipeline_parallel_schedule_csv")
    return job.pp > 1;
  if (name.starts_with("parallelism.context_parallel_")) return job.cp > 1;
  if (name == "parallelism.expert_parallel_comm_backend") return job.ep > 1;
  if (name.starts_with("activation_checkpoint.per_op"))
    return job.recomputation == "selective" && job.selective == "op";
  if (name.starts_with("activation_checkpoint.")) return job.recomputation != "none";
  if (name == "compile.backend") return job.compiles;
  return true;
}

void require_predicted(const GivenValue& given, const Fixed& fixed, const TitanJob& job) {
  std::vector<std::string> predicted;
  for (const std::string_view value : split(fixed.values, ' ')) predicted.emplace_back(value);
  const bool known =
      fixed.values == given.text || std::ranges::find(predicted, given.text) != predicted.end();
  if (known || !matters(given.name(), job)) return;
  throw InputError(given.where + ": " + given.name() + " = " + printable(given.text) + " is not predicted: " +
                   std::string(fixed.brings) + "; expected " + join(predicted, " or "));
}

[[noreturn]] void refuse_unknown(const GivenValue& given, const OptionTable& read) {
  std::vector<std::string> names = unread_keys().idle;
  for (const auto& [name, fixed] : unread_keys().fixed) names.push_back(name);
  for (const Option& option : read) names.push_back(option.name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw InputError(given.where + ": " + printable(given.name()) + " is not a key of torchtitan 0.2.2" +
                   did_you_mean(given.name(), views, ""));
}

void assign_given(const Option& option, const GivenValue& given) {
  if (!given.value)
    throw InputError(given.where + ": " + given.name() + " is " + given.text + "; it must be of type " +
                     std::string(type_name(option)));
  assign(option, *given.value, given.where);
}

}  // namespace

bool TitanJob::compiles_model() const {
  return compiles && std::ranges::find(compiled, "model") != compiled.end();
}

TitanJob read_titan_job(const std::vector<GivenValue>& values, const std::string& origin) {
  TitanJob job;
  const OptionTable read = describe(job);
  std::vector<const GivenValue*> unread;
  for (const GivenValue& given : values) {
    const auto option = std::ranges::find(read, given.name(), &Option::name);
    if (option != read.end()) {
      assign_given(*option, given);
    } else {
      unread.push_back(&given);
    }
  }
  for (const GivenValue* given : unread) {
    const UnreadKeys& keys = unread_keys();
    if (std::ranges::find(keys.idle, given->name()) != keys.idle.end()) continue;
    const auto fixed = keys.fixed.find(given->name());
    if (fixed == keys.fixed.end()) refuse_unknown(*given, read);
    require_predicted(*given, fixed->second, job);
  }
  require(job.shard != 0, origin + ": parallelism.data_parallel_shard_degree = 0: dp_shard must -1 or >=1.");
  return job;
}

}  // namespace penstock::plan
