// SPDX-License-Identifier: Apache-2.0
// The repository's hardware files and reference tables.
#pragma once

#include <filesystem>

#include "plan/published/score.h"
#include "sim/hardware_files.h"

namespace penstock::plan {

using sim::read_hardware;
using sim::read_source;

inline Table reference_table(const std::string& name) {
  return Table(read_source("bench/reference/" + name + ".csv"), name);
}

// Every hardware and engine file.
inline KnownMachines reference_machines() {
  KnownMachines known;
  const std::filesystem::path source = PENSTOCK_SOURCE_DIR;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source / "hardware")) {
    if (file.path().extension() != ".toml") continue;
    const auto name = file.path().lexically_relative(source / "hardware").replace_extension("");
    known.hardware.emplace(file.path().stem(), read_hardware(name));
  }
  for (const auto& file : std::filesystem::directory_iterator(source / "engines")) {
    if (file.path().extension() != ".toml") continue;
    NamedEngine& engine = known.engines[file.path().stem()];
    OptionTable table;
    describe(engine, table);
    sim::read_description(file.path().lexically_relative(source), table);
  }
  return known;
}

}  // namespace penstock::plan
