// SPDX-License-Identifier: Apache-2.0
#include "cli/data/describe_data.h"

#include <memory>

#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "cli/input/run_keys.h"

namespace penstock::cli {

void add_data_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<DataFlags>();
  CLI::App* command = program.add_subcommand(
      "data", "Describe a run's documents, and show which packing and cut of slices suits them.");
  command
      ->add_option(
          "run-file", flags->first,
          "a run file (TOML); a file with one document length in tokens per line may precede it, to plan for "
          "those instead of the run's data")
      ->required();
  command->add_option("second", flags->second, "the run file, if a list of lengths precedes it")
      ->type_name("");
  command->add_option("--steps", flags->steps, "steps to simulate")->check(whole_number_from(1));
  command->add_option("--hardware", flags->hardware,
                      "hardware file with the speeds; or assumed, to measure nothing; default: this "
                      "machine's profile, measured once");
  command->add_flag("--json", flags->json, "the table as JSON on stdout");
  take_run_keys(*command);
  command->callback([command, flags, &exit_code] {
    flags->overrides = command->remaining();
    exit_code = describe_data(*flags);
  });
}

}  // namespace penstock::cli
