// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/torchtitan.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "plan/trainer_choices.h"
#include "plan/trainers/torchtitan_models.h"
#include "plan/trainers/torchtitan_schedules.h"

namespace penstock::plan {
namespace {

// Layers per stage with which torchtitan splits the layers over the layout's stages; 0 if there is none.
std::int64_t layers_per_stage(const Workload& workload, const Layout& layout) {
  const EndWeights ends = layout.ends.value_or(EndWeights{});
  const std::int64_t all = workload.model.shape.layers + ends.first + ends.last, stages = stages_of(layout);
  const std::int64_t each = ceil_div(all, stages);
  return ceil_div(all, each) == stages ? each : 0;
}

class Writer {
 public:
  void text(const char* name, std::string_view value) { settings.push_back({name, json_quote(value)}); }
  void add(const char* name, std::int64_t value) { settings.push_back({name, std::to_string(value)}); }

  void pipeline(const Workload& workload, const Layout& layout) {
    const auto* schedule = std::ranges::find(kTitanSchedules, name_of(layout.schedule), &TitanSchedule::ours);
    require(schedule != std::end(kTitanSchedules),
            std::string(name_of(layout.schedule)) + " is not a schedule of torchtitan");
    text("parallelism.pipeline_parallel_schedule", schedule->theirs);
    const EndWeights ends = layout.ends.value_or(EndWeights{});
    if (const std::int64_t layers = layers_per_stage(workload, layout); layers > 0) {
      add("parallelism.pipeline_parallel_layers_per_stage", layers);
    } else {
      require(layout.chunks == schedule->chunks, "torchtitan has no split into so many stages");
    }
    add("parallelism.pipeline_parallel_first_stage_less_layers", ends.first);
    add("parallelism.pipeline_parallel_last_stage_less_layers", ends.last);
    add("parallelism.pipeline_parallel_microbatch_size", layout.micro_batch);
    // torchtitan overlaps them by default, with which it refuses recomputation; that is not predicted.
    if (layout.schedule == ScheduleKind::DualPipeV && layout.mesh.expert > 1)
      settings.push_back({"parallelism.pipeline_parallel_expert_parallel_overlap", "false"});
  }

  void recomputation(const Workload& workload, const Layout& layout) {
    const bool whole = layout.keep == model::keep_of(model::Policy::Full);
    if (whole && layout.recomputed == 1) return text("activation_checkpoint.mode", "full");
    if (whole && layout.recomputed > 0) {
      text("activation_checkpoint.mode", "selective");
      return text("activation_checkpoint.selective_ac_option", std::to_string(every(workload, layout)));
    }
    if (recomputes_every_second_product(layout)) {
      text("activation_checkpoint.mode", "selective");
      return text("activation_checkpoint.selective_ac_option", "op");
    }
    text("activation_checkpoint.mode", "none");
  }

  Settings settings;

 private:
  // The smallest interval that recomputes no more layers.
  static std::int64_t every(const Workload& workload, const Layout& layout) {
    for (std::int64_t each = 2; each < workload.model.shape.layers; ++each) {
      Layout other = layout;
      recompute_every(each, workload, other);
      if (other.recomputed <= layout.recomputed) return each;
    }
    return workload.model.shape.layers;
  }
};

}  // namespace

Settings torchtitan_settings(const Workload& workload, const Layout& layout) {
  Writer write;
  const TitanModel* model = titan_model_of(workload.model.shape);
  write.text("model.name", model ? model->name : titan_kind_of(workload.model.shape).name);
  write.text("model.flavor", model ? model->flavor : workload.model.name);
  const bool pipeline = layout.mesh.pipeline > 1;
  const std::int64_t copies =
      layout.sharded.group > 0 ? layout.mesh.replicas() / layout.sharded.group : std::int64_t{1};
  write.add("training.local_batch_size",
            pipeline ? workload.global_batch / layout.mesh.data : layout.micro_batch);
  write.add("training.global_batch_size", workload.global_batch);
  write.add("training.seq_len", workload.seq_len);
  write.text("training.mixed_precision_param", "bfloat16");
  write.add("parallelism.data_parallel_replicate_degree", copies);
  write.add("parallelism.data_parallel_shard_degree", layout.mesh.data / copies);
  if (layout.sharded.asked)
    write.text("parallelism.fsdp_reshard_after_forward", *layout.sharded.asked ? "always" : "never");
  write.add("parallelism.tensor_parallel_degree", layout.mesh.tensor);
  write.add("parallelism.context_parallel_degree", layout.mesh.context);
  write.add("parallelism.expert_parallel_degree", layout.mesh.expert);
  write.add("parallelism.pipeline_parallel_degree", layout.mesh.pipeline);
  if (pipeline) write.pipeline(workload, layout);
  write.recomputation(workload, layout);
  return write.settings;
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

}  // namespace penstock::plan
