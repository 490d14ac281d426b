// SPDX-License-Identifier: Apache-2.0
#include "cli/options_table.h"

#include <algorithm>

#include "train/options.h"

namespace penstock::cli {
namespace {

std::string default_text(const Option& option) {
  return option.shown_default.empty() ? value_text(option) : std::string(option.shown_default);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

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

// A cell may not end its column early.
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
    return "  " + padded(std::string(option.key) + " = " + default_text(option), 34) + " " +
           std::string(option.sentence) + (allowed.empty() ? "" : " (" + allowed + ")") + "\n";
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
std::string print_help(const OptionTable& table) { return each_section(table, Help{}); }
std::string print_markdown(const OptionTable& table) { return each_section(table, Markdown{}); }

std::string run_options_help() {
  train::RunOptions defaults;
  return print_help(train::describe(defaults));
}

std::string run_options_markdown() {
  train::RunOptions defaults;
  return "# The keys of a run file\n\n"
         "From the table that also drives the reader, the command line and the help. Every key may be given "
         "on the\n"
         "command line instead, as `--section.key value`.\n\n" +
         print_markdown(train::describe(defaults));
}

}  // namespace penstock::cli
