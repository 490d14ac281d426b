// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/torchtitan.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "run/description_file.h"

namespace penstock::plan {
namespace {

struct ScheduleName {
  std::string_view theirs, ours;
  int chunks;
};
constexpr ScheduleName kSchedules[] = {{"1F1B", "1f1b", 1},
                                       {"GPipe", "gpipe", 1},
                                       {"Interleaved1F1B", "interleaved", 2},
                                       {"ZBVZeroBubble", "zb-v", 2},
                                       {"DualPipeV", "dualpipe-v", 2}};

// Sizes of torchtitan/models/llama3.
struct Flavor {
  std::string_view name;
  std::int64_t layers, hidden, ffn, heads, kv_heads;
};
constexpr std::int64_t kVocabulary = 128256;
constexpr Flavor kFlavors[] = {
    {"8B", 32, 4096, 14336, 32, 8}, {"70B", 80, 8192, 28672, 64, 8}, {"405B", 126, 16384, 53248, 128, 8}};

struct Job {
  std::string model = "llama3", flavor = "debugmodel";
  std::int64_t local_batch = 8, global_batch = -1, seq_len = 2048;
  std::int64_t replicate = 1, shard = -1, tp = 1, pp = 1, cp = 1, ep = 1;
  std::int64_t layers_per_stage = 0, micro_batch = 1;
  std::string schedule = "1F1B", recomputation = "selective", csv;
};

OptionTable describe(Job& job) {
  OptionTable table;
  const auto add = [&](std::string_view section, std::string_view key, Target target) {
    table.push_back({section, key, target, "", {}});
  };
  add("model", "name", &job.model);
  add("model", "flavor", &job.flavor);
  add("training", "local_batch_size", &job.local_batch);
  add("training", "global_batch_size", &job.global_batch);
  add("training", "seq_len", &job.seq_len);
  add("parallelism", "data_parallel_replicate_degree", &job.replicate);
  add("parallelism", "data_parallel_shard_degree", &job.shard);
  add("parallelism", "tensor_parallel_degree", &job.tp);
  add("parallelism", "pipeline_parallel_degree", &job.pp);
  add("parallelism", "pipeline_parallel_schedule", &job.schedule);
  add("parallelism", "pipeline_parallel_schedule_csv", &job.csv);
  add("parallelism", "pipeline_parallel_layers_per_stage", &job.layers_per_stage);
  add("parallelism", "pipeline_parallel_microbatch_size", &job.micro_batch);
  add("parallelism", "context_parallel_degree", &job.cp);
  add("parallelism", "expert_parallel_degree", &job.ep);
  add("activation_checkpoint", "mode", &job.recomputation);
  return table;
}

// Keys of these sections that neither time nor memory depends on as far as they are predicted.
const std::map<std::string_view, std::vector<std::string_view>> kPassedOver{
    {"parallelism",
     {"fsdp_reshard_after_forward", "disable_loss_parallel", "enable_async_tensor_parallel",
      "module_fqns_per_model_part", "pipeline_parallel_first_stage_less_layers",
      "pipeline_parallel_last_stage_less_layers", "pipeline_parallel_expert_parallel_overlap",
      "context_parallel_load_balancer", "context_parallel_rotate_method", "expert_tensor_parallel_degree",
      "expert_parallel_comm_backend"}},
    {"activation_checkpoint",
     {"selective_ac_option", "per_op_sac_force_recompute_mm_shapes_by_fqns", "early_stop", "memory_budget",
      "visualize_memory_budget_pareto", "preserve_rng_state", "determinism_check", "debug"}},
    {"training",
     {"dataset", "dataset_path", "max_norm", "steps", "enable_cpu_offload", "dtype", "mixed_precision_param",
      "mixed_precision_reduce", "gc_freq", "gc_debug", "dataloader"}},
    {"model", {"hf_assets_path", "tokenizer_path", "converters", "print_after_conversion"}}};

// The lines that are read; others become empty, so that errors name the right ones.
std::string lines_to_read(const std::string& text) {
  std::string kept, section;
  int open = 0;  // brackets of a list that is passed over
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view bare = trim(line);
    const auto key = trim(bare.substr(0, bare.find('=')));
    if (open == 0 && bare.starts_with('[') && bare.find('=') == std::string_view::npos)
      section = bare.substr(1, bare.find(']') - 1);
    const auto passed = kPassedOver.find(section);
    const bool drop = open > 0 || passed == kPassedOver.end() ||
                      std::ranges::find(passed->second, key) != passed->second.end();
    if (drop && !bare.starts_with('#')) {
      open += static_cast<int>(std::ranges::count(bare, '[') - std::ranges::count(bare, ']'));
      open = std::max(open, 0);
    }
    kept += drop ? "\n" : std::string(line) + "\n";
  }
  return kept;
}

const Flavor& find_flavor(const Job& job, const std::string& origin) {
  for (const Flavor& flavor : kFlavors) {
    if (job.model == "llama3" && job.flavor == flavor.name) return flavor;
  }
  throw InputError(origin + ": model.name = " + json_quote(job.model) + ", model.flavor = " +
                   json_quote(job.flavor) + ": sizes are known of llama3 8B, 70B and 405B");
}

const ScheduleName& find_schedule(const Job& job, const std::string& origin) {
  std::vector<std::string> names;
  for (const ScheduleName& schedule : kSchedules) {
    if (job.schedule == schedule.theirs) return schedule;
    names.emplace_back(schedule.theirs);
  }
  throw InputError(origin + ": parallelism.pipeline_parallel_schedule = " + json_quote(job.schedule) +
                   " is not predicted; expected one of " + join(names, ", "));
}

void require_positive(const std::string& origin,
                      std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  for (const auto& [key, value] : values)
    require(value >= 1, origin + ": " + key + " = " + std::to_string(value) + ": expected 1 or more");
}

// Ranks that share the weights out.
std::int64_t shards_of(const Job& job, std::int64_t world, const std::string& origin) {
  const std::int64_t others = job.replicate * job.tp * job.pp * job.cp;
  const std::int64_t shards = job.shard == -1 ? std::max<std::int64_t>(world / others, 1) : job.shard;
  require(shards >= 1 && shards * others == world,
          origin + ": dp_replicate(" + std::to_string(job.replicate) + ") * dp_shard(" +
              std::to_string(shards) + ") * cp(" + std::to_string(job.cp) + ") * tp(" +
              std::to_string(job.tp) + ") * pp(" + std::to_string(job.pp) + ") != WORLD_SIZE(" +
              std::to_string(world) + ")");
  require(job.replicate == 1,
          origin + ": parallelism.data_parallel_replicate_degree = " + std::to_string(job.replicate) +
              ": only 1, sharding over all replicas, is predicted");
  return shards;
}

void read_batch(const Job& job, std::int64_t replicas, const std::string& origin, PlanOptions& options) {
  const std::int64_t step = job.local_batch * replicas;
  options.workload.global_batch = job.global_batch < 0 ? step : job.global_batch;
  require(options.workload.global_batch % step == 0,
          origin + ": training.global_batch_size = " + std::to_string(job.global_batch) +
              " is not divisible by training.local_batch_size times the data-parallel degree, " +
              std::to_string(step));
  require(job.pp == 1 || options.workload.global_batch == step,
          origin + ": training.global_batch_size = " + std::to_string(job.global_batch) +
              ": accumulating gradients over pipeline steps is not predicted; expected " +
              std::to_string(step));
  require(job.pp == 1 || job.local_batch % job.micro_batch == 0,
          origin + ": training.local_batch_size = " + std::to_string(job.local_batch) +
              " is not divisible by parallelism.pipeline_parallel_microbatch_size = " +
              std::to_string(job.micro_batch));
  options.layout.micro_batch = job.pp > 1 ? job.micro_batch : job.local_batch;
}

const Flavor* flavor_of(const model::Shape& shape) {
  const auto* found = std::ranges::find_if(kFlavors, [&](const Flavor& flavor) {
    return flavor.layers == shape.layers && flavor.hidden == shape.hidden && flavor.ffn == shape.ffn &&
           flavor.kv_heads == shape.kv_heads;
  });
  return found == std::end(kFlavors) ? nullptr : found;
}

}  // namespace

Settings torchtitan_settings(const Workload& workload, const Layout& layout) {
  Settings settings;
  const auto text = [&](const char* name, std::string_view value) {
    settings.push_back({name, json_quote(value)});
  };
  const auto add = [&](const char* name, std::int64_t value) {
    settings.push_back({name, std::to_string(value)});
  };
  const Flavor* flavor = flavor_of(workload.model.shape);
  text("model.name", "llama3");
  text("model.flavor", flavor ? flavor->name : workload.model.name);
  const bool pipeline = layout.mesh.pipeline > 1;
  add("training.local_batch_size", pipeline ? workload.global_batch / layout.mesh.data : layout.micro_batch);
  add("training.global_batch_size", workload.global_batch);
  add("training.seq_len", workload.seq_len);
  text("training.mixed_precision_param", "bfloat16");
  add("parallelism.data_parallel_replicate_degree", 1);
  add("parallelism.data_parallel_shard_degree", layout.mesh.data);
  add("parallelism.tensor_parallel_degree", layout.mesh.tensor);
  add("parallelism.context_parallel_degree", layout.mesh.context);
  add("parallelism.expert_parallel_degree", layout.mesh.expert);
  add("parallelism.pipeline_parallel_degree", layout.mesh.pipeline);
  if (pipeline) {
    const auto* schedule = std::ranges::find(kSchedules, name_of(layout.schedule), &ScheduleName::ours);
    require(schedule != std::end(kSchedules),
            std::string(name_of(layout.schedule)) + " is no schedule of torchtitan");
    text("parallelism.pipeline_parallel_schedule", schedule->theirs);
    add("parallelism.pipeline_parallel_layers_per_stage", workload.model.shape.layers / stages_of(layout));
    add("parallelism.pipeline_parallel_first_stage_less_layers", 0);
    add("parallelism.pipeline_parallel_last_stage_less_layers", 0);
    add("parallelism.pipeline_parallel_microbatch_size", layout.micro_batch);
  }
  text("activation_checkpoint.mode", layout.keep == model::keep_of(model::Policy::Full) ? "full" : "none");
  return settings;
}

std::string print_torchtitan(const Settings& settings) {
  std::string text, section;
  for (const Setting& setting : settings) {
    const std::size_t dot = setting.name.find('.');
    if (setting.name.substr(0, dot) != section) {
      section = setting.name.substr(0, dot);
      text += "\n[" + section + "]\n";
    }
    text += setting.name.substr(dot + 1) + " = " + setting.value + "\n";
  }
  return text;
}

void read_torchtitan(const std::string& text, const std::string& origin, PlanOptions& options) {
  Job job;
  run::parse_description(lines_to_read(text), origin, describe(job));
  require_positive(origin, {{"parallelism.tensor_parallel_degree", job.tp},
                            {"parallelism.pipeline_parallel_degree", job.pp},
                            {"parallelism.context_parallel_degree", job.cp},
                            {"parallelism.expert_parallel_degree", job.ep},
                            {"parallelism.data_parallel_replicate_degree", job.replicate},
                            {"parallelism.pipeline_parallel_microbatch_size", job.micro_batch},
                            {"training.local_batch_size", job.local_batch},
                            {"training.seq_len", job.seq_len}});
  require(job.csv.empty(), origin + ": parallelism.pipeline_parallel_schedule_csv = " + json_quote(job.csv) +
                               ": a schedule of one's own is not predicted; penstock simulate draws on it");
  const Flavor& flavor = find_flavor(job, origin);
  options.model.shape = {.layers = flavor.layers,
                         .hidden = flavor.hidden,
                         .ffn = flavor.ffn,
                         .heads = flavor.heads,
                         .kv_heads = flavor.kv_heads,
                         .vocab = kVocabulary};
  options.workload.seq_len = job.seq_len;
  const std::int64_t shards = shards_of(job, options.cluster.gpus, origin);
  read_batch(job, shards, origin, options);
  PlanOptions::LayoutKeys& layout = options.layout;
  layout.tp = job.tp;
  layout.cp = job.cp;
  layout.pp = job.pp;
  layout.ep = job.ep;
  const ScheduleName& schedule = find_schedule(job, origin);
  layout.schedule = job.pp > 1 ? schedule.ours : "1f1b";
  layout.chunks = job.pp > 1 ? schedule.chunks : 1;
  if (job.pp > 1 && job.layers_per_stage > 0) layout.chunks = flavor.layers / (job.pp * job.layers_per_stage);
  require(layout.chunks >= 1, origin + ": parallelism.pipeline_parallel_layers_per_stage = " +
                                  std::to_string(job.layers_per_stage) +
                                  " leaves pipeline ranks without layers");
  require(job.recomputation == "none" || job.recomputation == "full",
          origin + ": activation_checkpoint.mode = " + json_quote(job.recomputation) +
              " is not predicted; expected none or full");
  layout.policy = job.recomputation;
}

}  // namespace penstock::plan
