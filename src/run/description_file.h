// SPDX-License-Identifier: Apache-2.0
// Files that describe machines and programs by name: hardware/NAME.toml, engines/NAME.toml, or a path.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::run {

// Whether it is a path, with a slash or ".toml", rather than a bare name.
bool is_description_path(const std::string& name);

// The file of that name: a path as given; a bare name in the folder `kind` ("hardware", "engines") of the
// working directory, of `beside` and its parent, and of the program's own tree or package. Throws InputError
// naming the known names.
std::string find_description(const std::string& kind, const std::string& name, const std::string& beside);

// What a file in any folder can say instead of `name`, which one in `beside` says: the bare name where it is
// found without `beside`, else the absolute path of its file. Throws likewise.
std::string name_for_any_file(const std::string& kind, const std::string& name, const std::string& beside);

// Names are then looked for in this folder's `kind` too: where a program's own files are, if it is no
// executable of its own. Before any other thread runs.
void add_description_home(const std::string& folder);

// Reads such a file, or a text of its form, into the table's targets; returns the keys given, as
// "section.key". All values of a text with other keys. "--section.key=value" words. Throw InputError that
// names file, line and key, as files/option_file.h.
Words read_description(const std::string& path, const OptionTable& table);
Words parse_description(const std::string& text, const std::string& origin, const OptionTable& table);
std::vector<GivenValue> parse_values(const std::string& text, const std::string& origin);
void override_description(std::span<const std::string> words, const OptionTable& table);

// The sizes in a Hugging Face config.json, or in the one of a folder.
model::Shape read_model_sizes(const std::string& path);

// Any file of that name in the first of those folders that has one, such as engines/checked.csv.
struct DescriptionText {
  std::string path, text;
};
std::optional<DescriptionText> read_beside_descriptions(const std::string& kind, const std::string& file);

// The first of those folders that is there. Throws InputError where none is.
std::string description_folder(const std::string& kind);

}  // namespace penstock::run
