// SPDX-License-Identifier: Apache-2.0
#include "plan/question.h"

#include <filesystem>

#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "plan/engine_file.h"
#include "run/description_file.h"
#include "run/hardware_file.h"

namespace penstock::plan {
namespace {

// The shape in a model's config.json, as keys of a plan file.
std::vector<std::string> keys_of_model(const std::string& config) {
  PlanOptions::ModelKeys model{.shape = run::read_model_sizes(config)};
  OptionTable table;
  describe(model, table);
  std::vector<std::string> words;
  for (const Option& option : table) {
    if (option.key != "name") words.push_back("--" + option.name() + "=" + value_text(option));
  }
  return words;
}

// Resolves paths in a plan file relative to its folder.
void find_from(const std::filesystem::path& folder, PlanOptions::ClusterKeys& cluster) {
  for (std::string* name : {&cluster.hardware, &cluster.engine}) {
    if (run::is_description_path(*name)) *name = (folder / *name).string();
  }
}

}  // namespace

bool is_model_path(const std::string& model) {
  std::error_code error;
  return std::filesystem::exists(model, error) || model.find('/') != std::string::npos ||
         model.ends_with(".json");
}

std::vector<std::string> overrides_of(const QuestionFlags& flags) {
  std::vector<std::string> words;
  std::error_code error;
  if (is_model_path(flags.model)) {
    if (!std::filesystem::exists(flags.model, error))
      throw InputError("--model " + printable(flags.model, 500) + ": there is no such file or folder");
    words = keys_of_model(flags.model);
  } else if (!flags.model.empty()) {
    words.push_back("--model.name=" + flags.model);
  }
  const auto add = [&](const char* key, std::int64_t value) {
    if (value > 0) words.push_back(std::string(key) + "=" + std::to_string(value));
  };
  add("--cluster.gpus", flags.gpus);
  add("--workload.seq_len", flags.seq_len);
  add("--workload.global_batch", flags.batch);
  if (!flags.hardware.empty()) words.push_back("--cluster.hardware=" + flags.hardware);
  if (!flags.engine.empty()) words.push_back("--cluster.engine=" + flags.engine);
  return words;
}

Question settled(PlanOptions options, const std::string& beside) {
  Question question{.options = std::move(options), .beside = beside};
  question.workload = workload_of(question.options);
  run::HardwareFile file =
      run::read_hardware_file(run::find_hardware_file(question.options.cluster.hardware, beside));
  const Trainer* trainer = find_trainer(question.options.cluster.engine);
  const std::string engine = trainer ? std::string(trainer->engine) : question.options.cluster.engine;
  question.cluster = cluster_of(question.options, file.hardware, read_engine(engine, beside).engine);
  if (trainer) {
    set_trainer(question.cluster, *trainer, question.options.cluster.compile);
    question.workload.habits = trainer->habits;
  }
  question.workload.precision = model::parse_precision(file.hardware.device.peak);
  question.workload.gpu = file.hardware.device.backend == "cuda";
  question.assumed = std::move(file.assumed);
  return question;
}

std::string print_question_file(const Question& question) {
  PlanOptions asked = question.options, defaults;
  PlanOptions::ClusterKeys& cluster = asked.cluster;
  cluster.hardware = run::name_for_any_file("hardware", cluster.hardware, question.beside);
  const bool has_file = cluster.engine != sim::kPenstock.name && find_trainer(cluster.engine) == nullptr;
  if (has_file) cluster.engine = run::name_for_any_file("engines", cluster.engine, question.beside);
  OptionTable table, default_table;
  describe(asked, table);
  describe(defaults, default_table);
  return print_changed_toml(table, default_table);
}

Question read_question(const std::string& path, std::span<const std::string> overrides) {
  PlanOptions options;
  OptionTable table;
  describe(options, table);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  run::require_settings(overrides, table);
  if (!path.empty()) {
    run::read_description(path, table);
    find_from(folder, options.cluster);
  }
  run::override_description(overrides, table);
  try {
    return settled(std::move(options), folder);
  } catch (const InputError& error) {
    const std::string text = error.what();
    const bool names_file = path.empty() || text.find(".toml") != std::string::npos;
    throw InputError(names_file ? text : path + ": " + text);
  }
}

}  // namespace penstock::plan
