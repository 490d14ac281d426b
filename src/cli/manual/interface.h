// SPDX-License-Identifier: Apache-2.0
// The command line as plain data: commands with their flags, read from the parser, and the keys of their
// files, read from the tables of options. The manual page and the shell completion print it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/options.h"
#include "cli/commands.h"
#include "plan/plan_options.h"
#include "run/options.h"

namespace penstock::cli {

struct Flag {
  std::vector<std::string>
      names;          // "-p", "--devices"; an argument without a flag has one name, without dashes
  std::string value;  // "INT", "off|paired"; empty: takes no value
  std::string sentence;
  std::vector<std::string> choices;  // empty: any value
  bool required = false;
  bool repeats = false;  // takes several values

  bool positional() const { return !names.front().starts_with('-'); }
};

enum class KeysOf { None, Run, Plan };

struct Command {
  std::string name, sentence;
  std::vector<Flag> flags;
  KeysOf keys = KeysOf::None;  // the file whose keys it takes as --section.key VALUE
  bool takes_command = false;  // after all flags, and runs it
};

struct Interface {
  std::string sentence;
  std::vector<Flag> flags;  // before a command
  std::vector<Command> commands;
  OptionTable run_keys, plan_keys;

  const OptionTable& keys_of(KeysOf keys) const;  // `keys`: Run or Plan

 private:
  friend Interface interface_of(const CLI::App& program);
  // The options that the tables point to.
  std::shared_ptr<run::Options> run_defaults_;
  std::shared_ptr<plan::PlanOptions> plan_defaults_;
};

Interface interface_of(const CLI::App& program);

// The words that a key accepts; empty if it accepts other values.
std::vector<std::string> choices_of(const Option& key);

}  // namespace penstock::cli
