// SPDX-License-Identifier: Apache-2.0
#include "cli/input/machine_sets.h"

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "files/directory.h"
#include "plan/engine_file.h"
#include "run/description_file.h"
#include "run/hardware_file.h"

namespace penstock::cli {

namespace fs = std::filesystem;

plan::HardwareSet read_hardware_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError("\"" + printable(folder) +
                     "\" is not a folder; here --hardware names a folder of hardware files, among them those "
                     "of the table's rows");
  plan::HardwareSet set;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    set.emplace(entry.path().stem(), run::read_hardware_file(entry.path()).hardware);
  }
  return set;
}

plan::EngineSet read_engines() {
  plan::EngineSet set{{sim::kPenstock.name, {sim::kPenstock, {}}}};
  for (const fs::path& entry : files::entries_of(run::description_folder("engines"))) {
    if (entry.extension() == ".toml") set.emplace(entry.stem(), plan::read_engine_file(entry));
  }
  return set;
}

}  // namespace penstock::cli
