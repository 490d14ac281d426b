// SPDX-License-Identifier: Apache-2.0
// Files that describe machines and programs by name: hardware/NAME.toml, engines/NAME.toml, or a path.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::run {

// Whether `name` is a path, with a slash or ".toml", rather than a bare name.
bool is_description_path(const std::string& name);

// Finds the file of a name. Returns a path as given; searches for a bare name in the folder `kind`
// ("hardware", "engines") of the working directory, of `beside` and its parent, and of the program's own tree
// or package. Throws InputError naming the known names, after those of `built_in`, which have no file.
std::string find_description(const std::string& kind, const std::string& name, const std::string& beside,
                             const Words& built_in = {});

// Converts a `name` that a file in `beside` uses into one that a file in any folder can use: the bare name if
// the program's own tree or package has it with the same text, else the absolute path of its file. Throws as
// find_description does.
std::string name_for_any_file(const std::string& kind, const std::string& name, const std::string& beside);

// Adds a folder whose `kind` folder is searched too: for programs without an executable of their own, such as
// a Python module. Call before other threads start.
void add_description_home(const std::string& folder);

// Read such a file, or such a text, into the table's targets and return the keys given, as "section.key";
// parse_values returns all values of a text with other keys; override_description takes "--section.key=value"
// words, which require_settings checks. All throw InputError that names file, line and key, as
// files/option_file.h does.
Words read_description(const std::string& path, const OptionTable& table);
Words parse_description(const std::string& text, const std::string& origin, const OptionTable& table);
std::vector<GivenValue> parse_values(const std::string& text, const std::string& origin);
void require_settings(std::span<const std::string> words, const OptionTable& table);
void override_description(std::span<const std::string> words, const OptionTable& table);

// Reads the sizes in a Hugging Face config.json; `path` is the file or its folder.
model::Shape read_model_sizes(const std::string& path);

// Reads any file, such as engines/checked.csv, from the first of those folders that has it.
struct DescriptionText {
  std::string path, text;
};
std::optional<DescriptionText> read_beside_descriptions(const std::string& kind, const std::string& file);

// Returns the first of those folders that exists. Throws InputError if none does.
std::string description_folder(const std::string& kind);

}  // namespace penstock::run
