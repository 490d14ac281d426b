// SPDX-License-Identifier: Apache-2.0
#include "plan/run_file.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "plan/trainer.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "run/settle.h"
#include "schedule/generators/generator.h"
#include "sim/costs/layer_cost.h"

namespace penstock::plan {
namespace {

// Run files have no key for the expert load.
std::string note_of_expert_load(const Workload& workload, const Layout& layout) {
  const double load = std::min(workload.expert_load, sim::greatest_load(workload.model.shape, layout.mesh));
  if (load == 1) return {};
  return "# with the planned load of experts: penstock simulate FILE --expert-load " + exact_number(load) +
         "\n";
}

std::string arithmetic(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const double tokens = static_cast<double>(workload.global_batch * workload.seq_len);
  return "# " + print_layout(candidate.layout) + " on " + std::to_string(cluster.gpus) + " " +
         printable(cluster.hardware.device.name) + "\n# " +
         print_count(static_cast<double>(model::total_parameters(workload.model.shape))) + " parameters, " +
         print_count(tokens) + " tokens and " + print_count(model_flops(workload)) +
         "FLOP a step\n# predicted: " + number(candidate.step(), 4) + " s a step, " +
         number(100 * model_flops_utilization(workload, cluster, candidate.step()), 1) + " % MFU, " +
         gigabytes(as_double(candidate.memory.fullest.total()), 3) + " GB on device " +
         std::to_string(candidate.memory.rank) + "\n" + note_of_expert_load(workload, candidate.layout) +
         (workload.gpu ? "# on GPUs: penstock train FILE --train.device cuda\n\n" : "\n");
}

// The context mode that the closed form assumes.
std::string context_mode(const Workload& workload, const Layout& layout) {
  if (layout.mesh.context == 1) return "auto";
  const model::ContextSplit split = average_slice(workload, layout).context;
  return split.token_ranks() == 1 ? "heads" : split.heads > 1 ? "mixed" : "query";
}

void copy_order(const run::ScheduleOptions& from, run::ScheduleOptions& to) {
  to.forward = from.forward;
  to.input = from.input;
  to.weight = from.weight;
  to.transfer = from.transfer;
  to.in_flight = from.in_flight;
}

// Throws InputError for sizes that the reader of run files rejects.
void require_run_file_sizes(run::Options& options) {
  run::Options defaults;
  for (const Option& option : changed(run::describe(options), run::describe(defaults))) {
    if (const auto* size = std::get_if<std::int64_t*>(&option.target))
      assign(option, std::int64_t{**size}, "a run file");
  }
}

}  // namespace

run::Options options_of(const Workload& workload, const Layout& layout) {
  require_swiglu(workload.model, "a run file");
  run::Options options;
  options.model.shape = workload.model.shape;
  options.data.seq_len = workload.seq_len;
  options.parallel = {.pp = layout.mesh.pipeline,
                      .dp = layout.mesh.data,
                      .cp = layout.mesh.context,
                      .tp = layout.mesh.tensor,
                      .cp_mode = context_mode(workload, layout),
                      .ep = layout.mesh.expert};
  if (layout.output == 0 && takes_output(layout)) options.parallel.layers.word = "even";
  options.schedule.name = name_of(layout.schedule);
  if (is_sliced(layout.schedule)) options.schedule.slices = layout.slices;
  options.schedule.chunks = layout.chunks;
  options.schedule.group = layout.group;
  options.schedule.exchange = name_of(layout.exchange);
  options.schedule.vocabulary_parallel = layout.vocabulary_parallel;
  options.memory.policy = model::policy_text(layout.keep);
  options.memory.offload.number = layout.offload;
  options.train.batch = workload.global_batch;
  options.train.micro_batch = layout.micro_batch;
  options.train.precision = name_of(workload.precision);
  require_run_file_sizes(options);
  return options;
}

LaidOut lay_out(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  run::Machine machine;
  machine.hardware = cluster.hardware;
  try {
    run::Options options = options_of(workload, layout);
    if (workload.gpu) options.train.device = "cuda";
    run::Run run = run::lay_out(std::move(options), machine);
    run::choose_order(run);
    return {std::move(run), {}};
  } catch (const InputError& refusal) {
    return {{}, refusal.what()};
  }
}

std::string why_no_run(const Workload& workload, const Layout& layout) try {
  run::Options options = options_of(workload, layout);
  run::settle(options);
  return {};
} catch (const InputError& refusal) {
  return refusal.what();
}

void require_run_file(const Workload& workload, const Cluster& cluster, const std::string& what) {
  const std::string engine(cluster.trainer ? cluster.trainer->name : cluster.engine.name);
  require(cluster.engine == sim::kPenstock,
          what + " works only with Penstock's own trainer, but the plan is for the engine " +
              json_quote(engine) + "; expected cluster.engine = \"penstock\"");
  require_swiglu(workload.model, what);
}

std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir) {
  require_run_file(workload, cluster, "a run file");
  run::Options options = options_of(workload, candidate.layout), defaults;
  if (schedule::find_generator(options.schedule.name).made_for_costs) {
    if (const LaidOut laid = lay_out(workload, cluster, candidate.layout); laid.run)
      copy_order(laid.run->options.schedule, options.schedule);
  }
  options.data.text = text_file;
  options.output.dir = output_dir;
  return arithmetic(workload, cluster, candidate) +
         print_changed_toml(run::describe(options), run::describe(defaults));
}

}  // namespace penstock::plan
