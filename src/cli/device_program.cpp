// SPDX-License-Identifier: Apache-2.0
#include "cli/device_program.h"

#include <filesystem>

#include "backend/device.h"
#include "cli/become.h"
#include "comm/launcher.h"

namespace penstock::cli {

void become_program_for_gpus(const std::string& device) {
  backend::take_turn(comm::launched_local_rank());
  if (device != "cuda" || !backend::compute_device().is_cpu()) return;
  const std::string program = program_beside("penstock-cuda");
  if (std::filesystem::exists(program)) become(program);
}

}  // namespace penstock::cli
