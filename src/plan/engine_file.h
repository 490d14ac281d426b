// SPDX-License-Identifier: Apache-2.0
// Engine files: engines/NAME.toml, or a path.
#pragma once

#include <string>

#include "base/options.h"
#include "sim/costs/engine.h"

namespace penstock::plan {

// An engine, and how sources of published runs say that a run was its.
struct NamedEngine {
  sim::Engine engine;
  Words sources;
};
void describe(NamedEngine& engine, OptionTable& table);

// "penstock" is the trainer itself and needs no file. Throws InputError that names file, line and key, or the
// known names.
NamedEngine read_engine(const std::string& name, const std::string& beside);

NamedEngine read_engine_file(const std::string& path);

}  // namespace penstock::plan
