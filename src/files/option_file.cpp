// SPDX-License-Identifier: Apache-2.0
#include "files/option_file.h"

// The parser asserts that a key has a valid first character, but external files may violate that; it rejects
// them anyway. So its assertions are off in every build, as in release builds.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "files/mapped_file.h"

namespace penstock::files {
namespace {

constexpr std::size_t kLongestFile = 16 << 20;

std::string place(std::string_view origin, const toml::node& node) {
  return std::string(origin) + ":" + std::to_string(node.source().begin.line);
}

std::string_view kind_of(const toml::node& node) {
  if (node.is_table()) return "a section";
  if (node.is_array()) return "a list";
  return "a date or time";
}

std::optional<Scalar> scalar_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return Scalar(value->get());
  if (const auto* value = node.as_integer()) return Scalar(std::int64_t{value->get()});
  if (const auto* value = node.as_floating_point()) return Scalar(value->get());
  if (const auto* value = node.as_string()) return Scalar(value->get());
  return std::nullopt;
}

std::string wanted(const Option& option) {
  const std::string_view type = type_name(option);
  return (type.starts_with('i') ? "an " : "a ") + std::string(type);
}

[[noreturn]] void fail_kind(const Option& option, const toml::node& node, const std::string& where) {
  throw InputError(where + ": " + option.name() + " is " + std::string(kind_of(node)) + "; it must be " +
                   wanted(option));
}

std::vector<Scalar> list_of(const Option& option, const toml::array& array, const std::string& where) {
  std::vector<Scalar> list;
  for (const toml::node& element : array) {
    const auto scalar = scalar_of(element);
    if (!scalar) fail_kind(option, element, where);
    list.push_back(*scalar);
  }
  return list;
}

void read_key(const OptionTable& table, std::string_view section, std::string_view key,
              const toml::node& node, const std::string& where) {
  const Option& option = find_option(table, section, key, where);
  if (const auto* array = node.as_array()) return assign(option, list_of(option, *array, where), where);
  const auto scalar = scalar_of(node);
  if (!scalar) fail_kind(option, node, where);
  std::visit([&](const auto& value) { assign(option, value, where); }, *scalar);
}

void read_section(const OptionTable& table, std::string_view section, const toml::node& node,
                  std::string_view origin, Words& given) {
  const std::string where = place(origin, node);
  const auto* keys = node.as_table();
  const auto known = sections(table);
  if (keys == nullptr && std::ranges::find(known, section) != known.end()) {
    throw InputError(where + ": " + std::string(section) + " is a section; write [" + std::string(section) +
                     "]");
  }
  if (keys == nullptr) find_option(table, "", section, where);  // throws: keys outside sections are invalid
  check_section(table, section, where);
  for (const auto& [key, value] : *keys) {
    read_key(table, section, key.str(), value, place(origin, value));
    given.push_back(std::string(section) + "." + std::string(key.str()));
  }
}

toml::table parse(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw InputError(std::string(origin) + ":" + std::to_string(error.source().begin.line) + ": " +
                     printable(error.description(), 300));
  }
}

// Splits "--train.steps" into section and key.
const Option& option_of_flag(std::string_view flag, const OptionTable& table) {
  const std::size_t dot = flag.find('.');
  if (!flag.starts_with("--") || dot == std::string_view::npos) {
    throw InputError("command line: \"" + printable(flag) +
                     "\" is no setting; write --section.key value, as in --" + table.front().name() + " " +
                     value_text(table.front()));
  }
  return find_option(table, flag.substr(2, dot - 2), flag.substr(dot + 1), "command line");
}

}  // namespace

Words read_toml(std::string_view text, std::string_view origin, const OptionTable& table) {
  const toml::table document = parse(text, origin);
  if (document.empty()) {
    throw InputError(std::string(origin) + ": has no settings; write sections and keys, as in [" +
                     std::string(table.front().section) + "] " + std::string(table.front().key) + " = " +
                     value_text(table.front()));
  }
  Words given;
  for (const auto& [section, node] : document) read_section(table, section.str(), node, origin, given);
  return given;
}

Words read_toml_file(const std::string& path, const OptionTable& table) {
  return read_toml(read_text(path, kLongestFile), path, table);
}

void apply_overrides(std::span<const std::string> arguments, const OptionTable& table) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const Option& option = option_of_flag(argument.substr(0, equals), table);
    if (equals == std::string_view::npos && i + 1 == arguments.size()) {
      throw InputError("command line: --" + option.name() + " lacks its value, " + wanted(option));
    }
    assign_text(option, equals != std::string_view::npos ? argument.substr(equals + 1) : arguments[++i],
                "command line");
  }
}

}  // namespace penstock::files
