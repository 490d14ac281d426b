// SPDX-License-Identifier: Apache-2.0
// Configurations of other trainers, arguments where the input begins with "--", else job files; and what is
// predicted of them on a machine of fixed speeds.
#include <cmath>
#include <stdexcept>
#include <string>

#include "fuzz/driver.h"
#include "plan/layout_memory.h"
#include "plan/step_cost.h"
#include "plan/trainer.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/settings.h"
#include "plan/trainers/torchtitan.h"
#include "plan/trainers/torchtitan_question.h"
#include "run/description_file.h"

namespace penstock::plan {
namespace {

void take(std::string_view input) {
  const bool megatron = input.starts_with("--");
  PlanOptions options;
  options.cluster.gpus = 64;
  options.memory.offload = {0, ""};
  const Beyond beyond = megatron
                            ? read_megatron(MegatronArguments(std::string(input)), options)
                            : read_torchtitan(run::parse_values(std::string(input), "fuzz"), "fuzz", options);
  Question question;
  question.workload = workload_of(options);
  sim::Hardware hardware = sim::assumed_hardware();
  hardware.device.memory_gb = 80;
  question.cluster = cluster_of(options, hardware);
  set_trainer(question.cluster, *find_trainer(megatron ? "megatron" : "torchtitan"), false);
  apply(beyond, question.cluster.engine);
  Layout layout = layout_of(options, question.workload, question.cluster);
  apply(beyond, question.workload, layout);
  adapt(question.cluster, layout);
  if (refusal_of(*question.cluster.trainer, question.workload, layout)) return;
  const double seconds =
      step_cost(question.workload, layout, question.cluster.hardware, question.cluster.engine).total();
  if (!std::isfinite(seconds) || seconds <= 0) throw std::logic_error("a step takes no time");
  if (fit_memory(question.workload, layout, question.cluster.limit).fullest.total() <= 0)
    throw std::logic_error("a device holds nothing");
  settings_of(*question.cluster.trainer, question.workload, layout);
}

}  // namespace
}  // namespace penstock::plan

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::plan::take); }
