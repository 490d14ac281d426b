// SPDX-License-Identifier: Apache-2.0
#include "cli/manual/man_page.h"

#include <cstdio>

#include "base/option_text.h"

namespace penstock::cli {
namespace {

// Decodes the character that starts at `text[i]` and moves `i` to its last byte.
char32_t decode(std::string_view text, std::size_t& i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  const int more = byte < 0x80 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  char32_t character = more == 0 ? byte : byte & (0x3F >> more);
  for (int k = 0; k < more && i + 1 < text.size(); ++k)
    character = character << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
  return character;
}

std::string escaped(char32_t character) {
  switch (character) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";  // a minus, which can be copied into a shell, not a hyphen
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '"':
      return "\\(dq";
    case '\n':
      return " ";
    default:
      break;
  }
  if (character < 0x80) return {static_cast<char>(character)};
  char code[16];
  std::snprintf(code, sizeof code, "\\[u%04X]", static_cast<unsigned>(character));
  return code;
}

// Escapes text so that it prints as it is, anywhere in a line.
std::string roff(std::string_view text) {
  std::string line = text.starts_with('.') ? "\\&" : "";
  for (std::size_t i = 0; i < text.size(); ++i) line += escaped(decode(text, i));
  return line;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string section(const std::string& title) { return ".SH " + title + "\n"; }
std::string subsection(const std::string& title) { return ".SS " + title + "\n"; }
std::string paragraph(std::string_view text) { return ".PP\n" + roff(text) + "\n"; }
std::string item(const std::string& head, std::string_view text) {
  return ".TP\n" + head + "\n" + roff(text) + "\n";
}

std::string synopsis(const Command& command) {
  std::string line = bold("penstock " + command.name) + " [" + italic("flags") + "]";
  if (command.keys != KeysOf::None) line += " [" + bold("--") + italic("section.key value") + "]...";
  for (const Flag& flag : command.flags) {
    if (!flag.positional()) continue;
    const std::string name = italic(flag.names.front()) + (flag.repeats ? "..." : "");
    line += flag.required ? " " + name : " [" + name + "]";
  }
  return line + (command.takes_command ? " " + bold("--") + " " + italic("command") + "..." : "") + "\n";
}

std::string described(const Flag& flag) {
  if (flag.positional()) return item(italic(flag.names.front()), flag.sentence);
  std::string head;
  for (const std::string& name : flag.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (!flag.value.empty()) head += " " + italic(flag.value);
  return item(head, flag.sentence + (flag.required ? " (required)" : ""));
}

std::string described(const Command& command) {
  std::string text = subsection(bold("penstock " + command.name)) + roff(command.sentence) + "\n";
  if (command.keys != KeysOf::None) {
    text += paragraph(std::string("Each key of a ") + (command.keys == KeysOf::Run ? "run" : "plan") +
                      " file, below, can be given here too, as --section.key VALUE.");
  }
  for (const Flag& flag : command.flags) text += described(flag);
  return text;
}

std::string described(const OptionTable& keys) {
  std::string text;
  for (const std::string_view name : sections(keys)) {
    text += subsection("[" + roff(name) + "]");
    for (const Option& key : keys) {
      if (key.section != name) continue;
      const std::string allowed = to_text(key.constraint);
      text += item(bold(key.key) + " = " + roff(default_text(key)),
                   std::string(key.sentence) + (allowed.empty() ? "" : " (" + allowed + ")"));
    }
  }
  return text;
}

std::string exit_status() {
  return section("EXIT STATUS") + item("0", "Done; of a question: yes.") +
         item("1", "The answer is no: nothing fits, or the schedule is illegal.") +
         item("2", "Wrong input; nothing was begun.") + item("3", "Failed while running.");
}

}  // namespace

std::string man_page(const Interface& interface, std::string_view version) {
  std::string page = ".TH PENSTOCK 1 \"\" \"penstock " + roff(version) + "\"\n" + section("NAME") +
                     "penstock \\- trains long\\-context transformers with pipelines of sequence slices\n" +
                     section("SYNOPSIS");
  for (const Command& command : interface.commands)
    page += (command.name == interface.commands.front().name ? "" : ".br\n") + synopsis(command);
  page += ".br\n" + bold("mpirun -np") + " " + italic("ranks") + " " + bold("penstock train") + " " +
          italic("file") + "\n" + section("DESCRIPTION") + roff(interface.sentence) + "\n";
  for (const Flag& flag : interface.flags) page += described(flag);
  page += section("COMMANDS");
  for (const Command& command : interface.commands) page += described(command);
  page += section("KEYS OF A RUN FILE") + "Each with its default.\n" + described(interface.run_keys);
  page += section("KEYS OF A PLAN FILE") + "Each with its default.\n" + described(interface.plan_keys);
  return page + exit_status() + section("SEE ALSO") + ".BR mpirun (1)\n";
}

}  // namespace penstock::cli
