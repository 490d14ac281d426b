// SPDX-License-Identifier: Apache-2.0
// penstock man: prints the manual page, from the parser and the tables of options.
#include <iostream>

#include "cli/commands.h"
#include "cli/manual/man_page.h"
#include "cli/program.h"

namespace penstock::cli {

void add_man_command(CLI::App& program, Exit& exit_code) {
  CLI::App* command = program.add_subcommand("man", "Print the manual page: penstock man | man -l -");
  command->callback([&program, &exit_code] {
    std::cout << man_page(interface_of(program), version());
    exit_code = Exit::Done;
  });
}

}  // namespace penstock::cli
