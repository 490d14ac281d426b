// SPDX-License-Identifier: Apache-2.0
#include "base/option_text.h"

#include <algorithm>

#include "base/columns.h"

namespace penstock {
namespace {

template <class Print>
std::string each_section(const OptionTable& table, Print print) {
  std::string printed;
  for (const std::string_view section : sections(table)) {
    if (!printed.empty()) printed += "\n";
    printed += print(section);
    for (const Option& option : table) {
      if (option.section == section) printed += print(option);
    }
  }
  return printed;
}

// Escapes characters that would end the cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

struct Toml {
  std::string operator()(std::string_view section) const { return "[" + std::string(section) + "]\n"; }
  std::string operator()(const Option& option) const {
    return is_given(option) ? std::string(option.key) + " = " + value_text(option) + "\n" : "";
  }
};

struct Help {
  std::string operator()(std::string_view section) const { return "[" + std::string(section) + "]\n"; }
  std::string operator()(const Option& option) const {
    const std::string allowed = to_text(option.constraint);
    constexpr std::size_t kColumn = 34;
    std::string setting = left_aligned(std::string(option.key) + " = " + default_text(option), kColumn);
    if (width_of(setting) > kColumn) setting += "\n  " + std::string(kColumn, ' ');
    return "  " + setting + " " + std::string(option.sentence) +
           (allowed.empty() ? "" : " (" + allowed + ")") + "\n";
  }
};

struct Markdown {
  std::string operator()(std::string_view section) const {
    return "## [" + std::string(section) + "]\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n";
  }
  std::string operator()(const Option& option) const {
    const bool plain = option.shown_default.empty();
    const std::string shown = plain ? "`" + cell(value_text(option)) + "`" : cell(option.shown_default);
    const std::string allowed = to_text(option.constraint);
    return "| `" + std::string(option.key) + "` | " + shown + " | " + cell(type_name(option)) +
           (allowed.empty() ? "" : ", " + cell(allowed)) + " | " + cell(option.sentence) + " |\n";
  }
};

}  // namespace

std::string print_toml(const OptionTable& table) { return each_section(table, Toml{}); }

OptionTable changed(const OptionTable& table, const OptionTable& defaults) {
  OptionTable changed;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (value_text(table[i]) != value_text(defaults[i])) changed.push_back(table[i]);
  }
  return changed;
}

std::string print_changed_toml(const OptionTable& table, const OptionTable& defaults) {
  return print_toml(changed(table, defaults));
}

std::string default_text(const Option& option) {
  return option.shown_default.empty() ? value_text(option) : std::string(option.shown_default);
}

std::string print_help(const OptionTable& table) { return each_section(table, Help{}); }
std::string print_markdown(const OptionTable& table) { return each_section(table, Markdown{}); }

}  // namespace penstock
