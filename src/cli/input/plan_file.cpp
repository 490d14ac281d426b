// SPDX-License-Identifier: Apache-2.0
#include "cli/input/plan_file.h"

#include <filesystem>

#include "base/error.h"
#include "cli/input/hardware_file.h"
#include "files/option_file.h"

namespace penstock::cli {

PlanQuestion read_plan_file(const std::string& path, std::span<const std::string> overrides) {
  PlanQuestion question;
  OptionTable table;
  plan::describe(question.options, table);
  files::read_toml_file(path, table);
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
    throw InputError(text.find(".toml") == std::string::npos ? path + ": " + text : text);
  }
  return question;
}

}  // namespace penstock::cli
