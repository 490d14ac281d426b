// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_file.h"

#include "run/description_file.h"

namespace penstock::plan {

void describe(NamedEngine& engine, OptionTable& table) {
  describe(engine.engine, table);
  table.insert(table.begin() + 1, {"engine",
                                   "sources",
                                   &engine.sources,
                                   "Parts of the sources, in tables of published runs, whose trainer it is.",
                                   {}});
}

NamedEngine read_engine_file(const std::string& path) {
  NamedEngine named;
  OptionTable table;
  describe(named, table);
  run::read_description(path, table);
  return named;
}

NamedEngine read_engine(const std::string& name, const std::string& beside) {
  if (name == sim::kPenstock.name) return {sim::kPenstock, {}};
  return read_engine_file(
      run::find_description("engines", name, beside, {"penstock", "megatron", "torchtitan"}));
}

}  // namespace penstock::plan
