// SPDX-License-Identifier: Apache-2.0
#include "cli/manual/interface.h"

#include "base/text.h"
#include "schedule/generators/generator.h"

namespace penstock::cli {
namespace {

std::vector<std::string> words_between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  if (from == text.npos) return {};
  text.remove_prefix(from + begin.size());
  std::vector<std::string> words;
  for (const std::string_view word : split(text.substr(0, text.find(end)), ','))
    words.emplace_back(trim(word));
  return words;
}

// CLI11 lists the words of a checked flag in its type, "TEXT:{grid,csv}"; flags whose words come from a table
// list them at the start of their description.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::vector<std::string> checked = words_between(option.get_type_name(), ":{", "}");
  if (!checked.empty() || !option.get_description().starts_with("one of: ")) return checked;
  return words_between(option.get_description(), "one of: ", "\n");
}

std::vector<std::string> names_of_option(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true)};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag{.names = names_of_option(option),
            .sentence = option.get_description(),
            .choices = choices_of(option),
            .required = option.get_required(),
            .repeats = option.get_items_expected_max() > 1};
  if (option.get_items_expected_max() == 0) return flag;
  const std::string type = option.get_type_name();
  const bool checked = type.find(":{") != std::string::npos;
  flag.value = checked ? join(flag.choices, "|") : type.substr(0, type.find(':'));
  return flag;
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options({})) flags.push_back(flag_of(*option));
  return flags;
}

// Commands that take keys pass unknown words to the reader of their file.
KeysOf keys_taken_by(const CLI::App& command) {
  if (!command.get_allow_extras() || command.get_prefix_command()) return KeysOf::None;
  return command.get_name() == "plan" ? KeysOf::Plan : KeysOf::Run;
}

}  // namespace

const OptionTable& Interface::keys_of(KeysOf keys) const {
  PENSTOCK_CHECK(keys != KeysOf::None, "only commands that take keys have a table of them");
  return keys == KeysOf::Run ? run_keys : plan_keys;
}

Interface interface_of(const CLI::App& program) {
  Interface interface;
  interface.sentence = program.get_description();
  interface.flags = flags_of(program);
  for (const CLI::App* command : program.get_subcommands({})) {
    interface.commands.push_back({.name = command->get_name(),
                                  .sentence = command->get_description(),
                                  .flags = flags_of(*command),
                                  .keys = keys_taken_by(*command),
                                  .takes_command = command->get_prefix_command()});
  }
  interface.run_defaults_ = std::make_shared<run::Options>();
  interface.plan_defaults_ = std::make_shared<plan::PlanOptions>();
  interface.run_keys = run::describe(*interface.run_defaults_);
  plan::describe(*interface.plan_defaults_, interface.plan_keys);
  return interface;
}

std::vector<std::string> choices_of(const Option& key) {
  if (std::holds_alternative<bool*>(key.target)) return {"true", "false"};
  std::vector<std::string> choices(key.constraint.choices.begin(), key.constraint.choices.end());
  if (key.name() == "schedule.name") {
    for (const schedule::Generator& generator : schedule::generators()) choices.emplace_back(generator.name);
  }
  return choices;
}

}  // namespace penstock::cli
