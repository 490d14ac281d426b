// SPDX-License-Identifier: Apache-2.0
// The repository's hardware files, for tests without a TOML reader: they use sections, "key = value" and
// comments alone.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "base/text.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

inline std::string read_source(const std::string& path) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
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

}  // namespace penstock::sim
