// SPDX-License-Identifier: Apache-2.0
// The repository's hardware files and reference tables, for tests without a TOML reader: our hardware files
// use sections, "key = value" and comments alone.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "base/text.h"
#include "plan/score.h"

namespace penstock::plan {

inline std::string read_source(const std::string& path) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Table reference_table(const std::string& name) {
  return Table(read_source("bench/reference/" + name + ".csv"), name);
}

inline Hardware read_hardware(const std::string& name) {
  Hardware hardware;
  OptionTable table;
  describe(hardware, table);
  std::string section;
  const std::string text = read_source("hardware/" + name + ".toml");
  for (std::string_view line : split(text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.front() == '[') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const std::size_t equals = line.find('=');
    std::string_view value = trim(line.substr(equals + 1));
    if (value.front() == '"') value = value.substr(1, value.size() - 2);
    assign_text(find_option(table, section, trim(line.substr(0, equals)), name), value, name);
  }
  validate(hardware, name);
  return hardware;
}

inline HardwareSet reference_hardware() {
  HardwareSet set;
  for (const char* name : {"a100", "a100-vtrain", "a800", "h800"}) set.emplace(name, read_hardware(name));
  return set;
}

}  // namespace penstock::plan
