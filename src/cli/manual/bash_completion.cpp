// SPDX-License-Identifier: Apache-2.0
#include "cli/manual/bash_completion.h"

#include "base/text.h"

namespace penstock::cli {
namespace {

using Words = std::vector<std::string>;

// What the shell runs; %LISTS% sets `words` and `keys` for the command, and `values` for the flag before.
constexpr std::string_view kScript = R"(# Written by: penstock completion bash
_penstock() {
  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words="" keys="" values="" i
  COMPREPLY=()
  # "=" is a word of its own.
  if [[ $current == = ]]; then
    current=""
  elif [[ $flag == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "%COMMANDS%" -- "$current")
    return
  fi
  # Of a supervised command, the last penstock's.
  if [[ $command == supervise ]]; then
    for ((i = 2; i < COMP_CWORD - 1; ++i)); do
      [[ ${COMP_WORDS[i]##*/} == penstock ]] && command=${COMP_WORDS[i+1]}
    done
  fi
%LISTS%
  [[ $current == -* ]] && values="$words $keys"
  mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
}
# Where none is proposed, names of files are.
complete -o bashdefault -o default -F _penstock penstock
)";

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
  return text.replace(text.find(mark), mark.size(), by);
}

Words names_of(const std::vector<Flag>& flags) {
  Words names;
  for (const Flag& flag : flags) {
    if (!flag.positional()) names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

Words first_words(const Interface& interface) {
  Words words;
  for (const Command& command : interface.commands) words.push_back(command.name);
  for (const std::string& name : names_of(interface.flags)) words.push_back(name);
  return words;
}

std::string assigned(const char* variable, const Words& words) {
  return std::string(variable) + "=\"" + join(words, " ") + "\"";
}

std::string argument_of(const Option& key) { return "--" + key.name(); }

// case PATTERN of each flag or argument whose words are known.
std::string values_of(const Command& command) {
  std::string cases;
  for (const Flag& flag : command.flags) {
    if (flag.choices.empty()) continue;
    const std::string pattern = flag.positional() ? command.name : join(flag.names, "|");
    cases += "        " + pattern + ") " + assigned("values", flag.choices) + " ;;\n";
  }
  return cases.empty() ? cases : "      case $flag in\n" + cases + "      esac\n";
}

std::string case_of(const Command& command) {
  std::string text = "    " + command.name + ")\n      " + assigned("words", names_of(command.flags)) + "\n" +
                     values_of(command);
  if (command.keys != KeysOf::None)
    text += std::string("      keys=") + (command.keys == KeysOf::Run ? "run" : "plan") + "\n";
  return text + "      ;;\n";
}

std::string case_of(const char* name, const OptionTable& keys) {
  Words arguments;
  std::string cases;
  for (const Option& key : keys) {
    arguments.push_back(argument_of(key));
    const Words choices = choices_of(key);
    if (!choices.empty())
      cases += "        " + argument_of(key) + ") " + assigned("values", choices) + " ;;\n";
  }
  return std::string("    ") + name + ")\n      " + assigned("keys", arguments) + "\n      case $flag in\n" +
         cases + "      esac\n      ;;\n";
}

}  // namespace

std::string bash_completion(const Interface& interface) {
  std::string lists = "  case $command in\n";
  for (const Command& command : interface.commands) lists += case_of(command);
  lists += "  esac\n  case $keys in\n" + case_of("run", interface.run_keys) +
           case_of("plan", interface.plan_keys) + "  esac";
  return replaced(replaced(std::string(kScript), "%COMMANDS%", join(first_words(interface), " ")), "%LISTS%",
                  lists);
}

}  // namespace penstock::cli
