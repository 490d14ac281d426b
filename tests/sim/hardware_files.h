// SPDX-License-Identifier: Apache-2.0
// The repository's hardware files, for tests without a TOML reader: they use sections, "key = value" and
// comments alone.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

inline std::string read_source(const std::string& path) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "[\"one\", \"two, three\"]".
inline std::vector<Scalar> words_in(std::string_view list) {
  std::vector<Scalar> words;
  const std::vector<std::string_view> parts = split(list, '"');
  for (std::size_t i = 1; i < parts.size(); i += 2) words.emplace_back(std::string(parts[i]));
  return words;
}

// Of "hardware/a100.toml".
inline void read_description(const std::string& path, const OptionTable& table) {
  std::string section;
  const std::string text = read_source(path);
  for (std::string_view line : split(text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.front() == '[') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const std::size_t equals = line.find('=');
    const Option& option = find_option(table, section, trim(line.substr(0, equals)), path);
    std::string_view value = trim(line.substr(equals + 1));
    if (std::holds_alternative<Words*>(option.target)) {
      assign(option, words_in(value), path);
      continue;
    }
    if (value.front() == '"') value = value.substr(1, value.size() - 2);
    assign_text(option, value, path);
  }
}

inline Hardware read_hardware(const std::string& name) {
  Hardware hardware;
  OptionTable table;
  describe(hardware, table);
  read_description("hardware/" + name + ".toml", table);
  validate(hardware, name);
  return hardware;
}

}  // namespace penstock::sim
