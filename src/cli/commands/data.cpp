// SPDX-License-Identifier: Apache-2.0
#include "cli/data/describe_data.h"

#include <memory>

#include "cli/commands.h"

namespace penstock::cli {

void add_data_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<DataFlags>();
  CLI::App* command = program.add_subcommand(
      "data", "What the documents of a run are like, and which packing and cut of slices suits them.");
  command
      ->add_option(
          "run-file", flags->first,
          "a run file (TOML); before it may stand a file with the tokens of a document in each line, "
          "which are planned for instead of the run's data")
      ->required();
  command->add_option("second", flags->second, "the run file, after such a list")->type_name("");
  command->add_option("--steps", flags->steps, "steps that are simulated");
  command->add_option("--hardware", flags->hardware,
                      "speeds of this hardware file; or assumed, measuring nothing; default: this machine's "
                      "profile, measured once");
  command->add_flag("--json", flags->json, "the table as JSON on stdout");
  command->allow_extras();
  command->callback([command, flags, &exit_code] {
    flags->overrides = command->remaining();
    exit_code = describe_data(*flags);
  });
}

}  // namespace penstock::cli
