// SPDX-License-Identifier: Apache-2.0
#include "cli/train/device_program.h"

#include <filesystem>

#include "backend/device.h"
#include "cli/become.h"
#include "run/options.h"

namespace penstock::cli {

void become_program_for_cards(const RunSource& source) {
  if (!backend::compute_device().is_cpu()) return;
  if (run::read_options(source.file, source.overrides).train.device != "cuda") return;
  const std::string program = program_beside("penstock-cuda");
  if (std::filesystem::exists(program)) become(program);
}

}  // namespace penstock::cli
