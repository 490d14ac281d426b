// SPDX-License-Identifier: Apache-2.0
#include "run/hardware_file.h"

#include "run/description_file.h"

namespace penstock::run {
namespace {

HardwareFile finished(HardwareFile file, const Words& given, const std::string& origin) {
  sim::validate(file.hardware, origin);
  file.assumed = sim::assumed_speeds(file.hardware, given);
  return file;
}

}  // namespace

std::string find_hardware_file(const std::string& name, const std::string& beside) {
  return find_description("hardware", name, beside);
}

HardwareFile read_hardware_file(const std::string& path) {
  HardwareFile file;
  OptionTable table;
  sim::describe(file.hardware, table);
  const Words given = read_description(path, table);
  return finished(std::move(file), given, path);
}

HardwareFile parse_hardware_text(const std::string& text, const std::string& origin) {
  HardwareFile file;
  OptionTable table;
  sim::describe(file.hardware, table);
  const Words given = parse_description(text, origin, table);
  return finished(std::move(file), given, origin);
}

}  // namespace penstock::run
