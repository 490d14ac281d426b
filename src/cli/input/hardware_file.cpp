// SPDX-License-Identifier: Apache-2.0
#include "cli/input/hardware_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "files/option_file.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders(const std::string& beside) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path here = beside.empty() ? fs::path(".") : fs::path(beside);
  const fs::path installed = program / ".." / "share" / "penstock" / "hardware";
  return {"hardware", here / "hardware", here / ".." / "hardware", program / ".." / ".." / "hardware",
          installed};
}

std::vector<std::string> known_names(const std::string& beside) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders(beside)) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

HardwareFile finished(HardwareFile file, const Words& given, const std::string& origin) {
  sim::validate(file.hardware, origin);
  file.assumed = sim::assumed_speeds(file.hardware, given);
  return file;
}

}  // namespace

std::string find_hardware_file(const std::string& name, const std::string& beside) {
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    return fs::path(name).is_absolute() || beside.empty() ? name : (fs::path(beside) / name).string();
  }
  for (const fs::path& folder : folders(beside)) {
    const fs::path file = folder / (name + ".toml");
    if (fs::is_regular_file(file)) return file.lexically_normal().string();
  }
  throw InputError("hardware \"" + printable(name) + "\" is unknown; known are " +
                   join(known_names(beside), ", ") + ", or give a path");
}

HardwareFile read_hardware_file(const std::string& path) {
  HardwareFile file;
  OptionTable table;
  sim::describe(file.hardware, table);
  const Words given = files::read_toml_file(path, table);
  return finished(std::move(file), given, path);
}

HardwareFile parse_hardware_text(const std::string& text, const std::string& origin) {
  HardwareFile file;
  OptionTable table;
  sim::describe(file.hardware, table);
  const Words given = files::read_toml(text, origin, table);
  return finished(std::move(file), given, origin);
}

plan::HardwareSet read_hardware_folder(const std::string& folder) {
  plan::HardwareSet set;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    set.emplace(entry.path().stem(), read_hardware_file(entry.path()).hardware);
  }
  return set;
}

}  // namespace penstock::cli
