// SPDX-License-Identifier: Apache-2.0
// Plans: the best configurations of a cluster; and costs by a machine's speeds.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "model/slices.h"
#include "plan/answer.h"
#include "plan/published/confidence.h"
#include "plan/run_file.h"
#include "plan/trainers/settings.h"
#include "python/bindings.h"
#include "python/interruption.h"
#include "python/values.h"
#include "run/description_file.h"
#include "run/hardware_file.h"
#include "run/tensor.h"
#include "schedule/check/check.h"
#include "schedule/passes/lower.h"
#include "schedule/placement.h"
#include "sim/costs/analytic.h"
#include "sim/lowering.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;
using plan::Candidate;
using plan::Plan;

struct Answer {
  plan::Question question;
  Plan plan;
};

// `model`: a known model, or the path of a config.json or of its folder; empty: that of the file.
Answer answer(const std::string& file, const std::string& model, const std::vector<std::string>& more,
              bool layout_alone) {
  return released([&] {
    std::vector<std::string> words = plan::overrides_of({.model = model});
    words.insert(words.end(), more.begin(), more.end());
    plan::Question question = plan::read_question(file, words);
    Plan plan = layout_alone ? plan::answer_for_layout(question) : plan::answer(question);
    plan::require_answer(plan, file);
    return Answer{std::move(question), std::move(plan)};
  });
}

const Candidate& candidate_of(const Answer& answer, bool pareto, std::size_t number) {
  return (pareto ? answer.plan.result.pareto : answer.plan.result.best).at(number);
}

nb::list memory_of(const Answer& answer, bool pareto, std::size_t number) {
  nb::list devices;
  for (const model::MemoryPeaks& memory :
       plan::memory_of_devices(answer.question.workload, candidate_of(answer, pareto, number))) {
    nb::dict row;
    for (const auto& [name, bytes] : model::categories(memory)) row[std::string(name).c_str()] = bytes;
    row["total"] = memory.total();
    row["host"] = memory.host;
    devices.append(row);
  }
  return devices;
}

struct MachineWork {
  std::string model;  // known, or the path of a config.json or of its folder
  std::int64_t seq_len = 0, micro_batch = 1;
  int tensor = 1, context = 1;
  std::string policy = "none";
};

model::Shape shape_of(const std::string& model) {
  return plan::is_model_path(model) ? run::read_model_sizes(model) : plan::find_model(model).shape;
}

// Makes error messages name the Python argument.
void require_tensor(const model::Shape& shape, int tensor) try {
  run::require_shards(shape, tensor);
} catch (const InputError& error) {
  std::string text = error.what();
  constexpr std::string_view kKey = "parallel.tp";
  if (text.starts_with(kKey)) text.replace(0, kKey.size(), "tensor");
  throw InputError(text);
}

// Splits layers evenly over stages and tokens over slices, like a run with parallel.layers = "even".
sim::Work work_of(const MachineWork& asked, const schedule::Schedule& schedule,
                  const sim::Hardware& hardware) {
  sim::Work work{.shape = shape_of(asked.model)};
  work.mesh = {.tensor = asked.tensor, .context = asked.context, .pipeline = schedule.device_count()};
  mesh::validate(work.mesh);
  // Far above any; bytes of known models do not overflow.
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;
  require(as_double(asked.micro_batch) * as_double(asked.seq_len) <= as_double(kMostTokens),
          "micro_batch = " + std::to_string(asked.micro_batch) +
              " sequences of seq_len = " + std::to_string(asked.seq_len) + " tokens are more than " +
              std::to_string(kMostTokens) + " tokens");
  require(asked.context <= asked.seq_len, "context = " + std::to_string(asked.context) +
                                              " is more than the " + std::to_string(asked.seq_len) +
                                              " tokens of seq_len");
  require_tensor(work.shape, asked.tensor);
  require(schedule.stages <= work.shape.layers, "model: " + std::to_string(work.shape.layers) +
                                                    " layers are fewer than " +
                                                    std::to_string(schedule.stages) + " stages");
  work.layers = model::split_layers(work.shape.layers, schedule.stages);
  const schedule::Placement placement(schedule);
  for (int stage = 0; stage < schedule.stages; ++stage) work.devices.push_back(placement.device_of(stage, 0));
  work.held = placement.replicated_stages();
  for (const int n : schedule.slices) work.slices.push_back(model::cut_into_slices(asked.seq_len, n));
  work.sequences = asked.micro_batch;
  work.precision = model::parse_precision(hardware.device.peak);
  if (const auto policy = model::parse_policy(asked.policy); policy != model::Policy::None) {
    const model::KeepSet keep = model::keep_of(policy);
    const bool sliced = schedule::is_sliced(schedule);
    work.keep.assign(work.shape.layers, sliced ? keep.with(model::SavedTensor::KeyValue) : keep);
  }
  work.context = model::automatic_split(model::shape_of_rank(work.shape, asked.tensor), asked.context);
  return work;
}

std::shared_ptr<schedule::Program> machine_program(const std::string& hardware, const MachineWork& asked,
                                                   const schedule::Schedule& schedule) {
  return released([&] {
    schedule::require_legal(schedule);
    const sim::Hardware machine = run::read_hardware_file(run::find_hardware_file(hardware, "")).hardware;
    const auto bytes = std::make_shared<const sim::RunBytes>(work_of(asked, schedule, machine));
    return std::make_shared<schedule::Program>(schedule::lower(schedule, sim::lowering_of(bytes)));
  });
}

CostsValue machine_costs(const std::string& hardware, const MachineWork& asked,
                         const schedule::Schedule& schedule) {
  return released([&] {
    const sim::Hardware machine = run::read_hardware_file(run::find_hardware_file(hardware, "")).hardware;
    return costs_value(sim::AnalyticCosts(work_of(asked, schedule, machine), machine));
  });
}

void add_answer(nb::module_& module) {
  nb::class_<Answer>(module, "Answer")
      .def("to_json", [](const Answer& self) { return plan::print_answer_json(self.question, self.plan); })
      .def("to_text",
           [](const Answer& self) {
             return plan::print_plan(self.plan) +
                    print(plan::confidence_in(self.question, self.plan), "Step of the first");
           })
      .def_prop_ro("question", [](const Answer& self) { return plan::print_question(self.plan); })
      .def_prop_ro("assumed", [](const Answer& self) { return self.question.assumed; })
      .def("layout",
           [](const Answer& self, bool pareto, std::size_t number) {
             return plan::print_layout(candidate_of(self, pareto, number).layout);
           })
      .def("why",
           [](const Answer& self, bool pareto, std::size_t number) {
             return plan::explain(self.question.workload, self.question.cluster,
                                  candidate_of(self, pareto, number));
           })
      .def("run_file",
           [](const Answer& self, bool pareto, std::size_t number, const std::string& directory) {
             return plan::run_file(self.question.workload, self.question.cluster,
                                   candidate_of(self, pareto, number), self.question.options.workload.text,
                                   directory);
           })
      .def("settings",
           [](const Answer& self, bool pareto, std::size_t number) {
             if (self.question.cluster.trainer == nullptr)
               throw InputError("engine " + self.question.options.cluster.engine +
                                " has no configuration to write; plan for megatron or torchtitan");
             return plan::print_settings(*self.question.cluster.trainer, self.plan,
                                         candidate_of(self, pareto, number));
           })
      .def("memory", &memory_of);
}

}  // namespace

void add_plans(nb::module_& module) {
  module.def("add_description_home", &run::add_description_home);
  module.def("answer", &answer);
  add_answer(module);
  nb::class_<MachineWork>(module, "MachineWork")
      .def(nb::init<>())
      .def_rw("model", &MachineWork::model)
      .def_rw("seq_len", &MachineWork::seq_len)
      .def_rw("micro_batch", &MachineWork::micro_batch)
      .def_rw("tensor", &MachineWork::tensor)
      .def_rw("context", &MachineWork::context)
      .def_rw("policy", &MachineWork::policy);
  module.def("machine_program", &machine_program);
  module.def("machine_costs", &machine_costs);
}

}  // namespace penstock::python
