// SPDX-License-Identifier: Apache-2.0
#include "run/description_file.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "files/model_config.h"
#include "files/option_file.h"

namespace penstock::run {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path>& homes() {
  static std::vector<fs::path> added;
  return added;
}

enum class Searched : bool { FromAnywhere, All };  // folders independent of the working directory, or all

// In order of precedence.
std::vector<fs::path> folders(const std::string& kind, const std::string& beside,
                              Searched searched = Searched::All) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path here = beside.empty() ? fs::path(".") : fs::path(beside);
  std::vector<fs::path> all;
  if (searched == Searched::All) all = {kind, here / kind, here / ".." / kind};
  all.insert(all.end(), {program / ".." / ".." / kind, program / ".." / "share" / "penstock" / kind});
  for (const fs::path& home : homes()) all.push_back(home / kind);
  return all;
}

// Each folder, followed by the one in it for descriptions of published runs.
std::vector<fs::path> with_published(const std::vector<fs::path>& folders) {
  std::vector<fs::path> all;
  for (const fs::path& folder : folders) all.insert(all.end(), {folder, folder / "published"});
  return all;
}

// Finds the file of a bare name in the first folder that has it.
std::optional<std::string> file_of_name(const std::vector<fs::path>& among, const std::string& name) {
  std::error_code ignored;  // as of a name that is too long
  for (const fs::path& folder : with_published(among)) {
    const fs::path file = folder / (name + ".toml");
    if (fs::is_regular_file(file, ignored)) return file.lexically_normal().string();
  }
  return {};
}

std::vector<std::string> known_names(const std::string& kind, const std::string& beside) {
  std::vector<std::string> names;
  for (const fs::path& folder : with_published(folders(kind, beside))) {
    for (const fs::path& entry : files::entries_of(folder)) {
      if (entry.extension() == ".toml") names.push_back(entry.stem());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

void add_description_home(const std::string& folder) { homes().push_back(folder); }

Words read_description(const std::string& path, const OptionTable& table) {
  return files::read_toml_file(path, table);
}

Words parse_description(const std::string& text, const std::string& origin, const OptionTable& table) {
  return files::read_toml(text, origin, table);
}

std::vector<GivenValue> parse_values(const std::string& text, const std::string& origin) {
  return files::read_toml_values(text, origin);
}

void require_settings(std::span<const std::string> words, const OptionTable& table) {
  files::require_settings(words, table);
}

void override_description(std::span<const std::string> words, const OptionTable& table) {
  files::apply_overrides(words, table);
}

model::Shape read_model_sizes(const std::string& path) { return files::read_model_config(path); }

bool is_description_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

std::string find_description(const std::string& kind, const std::string& name, const std::string& beside,
                             const Words& built_in) {
  if (is_description_path(name)) return name;
  if (const auto file = file_of_name(folders(kind, beside), name)) return *file;
  std::vector<std::string> names = known_names(kind, beside);
  const std::string one = kind.substr(0, kind.find_last_not_of('s') + 1);  // "engine", "hardware"
  const std::string why = names.empty()
                              ? " is not found: there is no folder " + kind + "/ here or next to the program"
                              : " is unknown";
  names.insert(names.begin(), built_in.begin(), built_in.end());
  throw InputError(one + " \"" + printable(name) + "\"" + why + "; give a path" +
                   (names.empty() ? "" : ", or one of " + join(names, ", ")));
}

std::string name_for_any_file(const std::string& kind, const std::string& name, const std::string& beside) {
  const std::string found = find_description(kind, name, beside);
  if (!is_description_path(name)) {
    const auto elsewhere = file_of_name(folders(kind, beside, Searched::FromAnywhere), name);
    constexpr std::size_t kLongest = 16 << 20;  // as of any file of options
    const auto text = [](const std::string& path) { return files::read_text(path, kLongest); };
    if (elsewhere && text(*elsewhere) == text(found)) return name;
  }
  return fs::absolute(found).string();
}

std::optional<DescriptionText> read_beside_descriptions(const std::string& kind, const std::string& file) {
  constexpr std::size_t kLongest = 1 << 20;
  for (const fs::path& folder : folders(kind, "")) {
    std::error_code ignored;
    const std::string path = (folder / file).lexically_normal().string();
    if (fs::is_regular_file(path, ignored)) return DescriptionText{path, files::read_text(path, kLongest)};
  }
  return {};
}

std::string description_folder(const std::string& kind) {
  for (const fs::path& folder : folders(kind, "")) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal().string();
  }
  throw InputError("there is no folder " + kind + "/ here or next to the program");
}

}  // namespace penstock::run
