// SPDX-License-Identifier: Apache-2.0
#include "cli/input/plan_file.h"

#include <filesystem>

#include "base/error.h"
#include "cli/input/hardware_file.h"
#include "files/model_config.h"
#include "files/option_file.h"

namespace penstock::cli {
namespace {

// The sizes of a model's config.json, as keys of a plan file.
std::vector<std::string> sizes_of(const std::string& config) {
  const model::Shape shape = files::read_model_config(config);
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", shape.layers}, {"hidden", shape.hidden},     {"ffn", shape.ffn},
      {"heads", shape.heads},   {"kv_heads", shape.kv_heads}, {"vocab", shape.vocab}};
  std::vector<std::string> words;
  for (const auto& [key, value] : sizes)
    words.push_back("--model." + std::string(key) + "=" + std::to_string(value));
  words.push_back(std::string("--model.tied_embeddings=") + (shape.tied_embeddings ? "true" : "false"));
  return words;
}

}  // namespace

std::vector<std::string> overrides_of(const PlanFlags& flags) {
  std::vector<std::string> words;
  std::error_code error;
  if (!flags.model.empty() && std::filesystem::exists(flags.model, error)) {
    words = sizes_of(flags.model);
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
  return words;
}

PlanQuestion read_plan_file(const std::string& path, std::span<const std::string> overrides) {
  PlanQuestion question;
  OptionTable table;
  plan::describe(question.options, table);
  if (!path.empty()) files::read_toml_file(path, table);
  files::apply_overrides(overrides, table);
  try {
    question.workload = plan::workload_of(question.options);
    const std::string beside = std::filesystem::path(path).parent_path();
    HardwareFile file = read_hardware_file(find_hardware_file(question.options.cluster.hardware, beside));
    question.cluster = plan::cluster_of(question.options, file.hardware);
    question.workload.precision = model::parse_precision(file.hardware.device.peak);
    question.assumed = std::move(file.assumed);
  } catch (const InputError& error) {
    const std::string text = error.what();
    const bool names_file = path.empty() || text.find(".toml") != std::string::npos;
    throw InputError(names_file ? text : path + ": " + text);
  }
  return question;
}

}  // namespace penstock::cli
