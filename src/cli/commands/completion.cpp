// SPDX-License-Identifier: Apache-2.0
// penstock completion: prints a shell script that completes command lines, from the parser and the tables of
// options.
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/manual/bash_completion.h"

namespace penstock::cli {

void add_completion_command(CLI::App& program, Exit& exit_code) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "completion", "Print a script for shell completion: source <(penstock completion bash)");
  command->add_option("shell", *shell, "the shell")->required()->check(CLI::IsMember({"bash"}));
  command->callback([&program, &exit_code, shell] {
    std::cout << bash_completion(interface_of(program));
    exit_code = Exit::Done;
  });
}

}  // namespace penstock::cli
