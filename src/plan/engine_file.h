// SPDX-License-Identifier: Apache-2.0
// Engine files: engines/NAME.toml, or a path.
#pragma once

#include <string>

#include "base/options.h"
#include "sim/costs/engine.h"

namespace penstock::plan {

// An engine, and parts of the `source` column of published runs that mean this engine.
struct NamedEngine {
  sim::Engine engine;
  Words sources;
};
void describe(NamedEngine& engine, OptionTable& table);

// "penstock" is built in and needs no file. Throws InputError with file, line and key, or with the known
// names.
NamedEngine read_engine(const std::string& name, const std::string& beside);

NamedEngine read_engine_file(const std::string& path);

}  // namespace penstock::plan
