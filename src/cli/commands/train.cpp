// SPDX-License-Identifier: Apache-2.0
#include "cli/train/train.h"

#include <memory>

#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "run/options.h"

namespace penstock::cli {

void add_train_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = program.add_subcommand("train", "Carry out a run file.");
  command->add_option("file", flags->source.file, "the run file (TOML)")->required();
  command
      ->add_option("--ranks", flags->ranks,
                   "start so many ranks as threads of this process; not under mpirun")
      ->check(whole_number_from(1));
  command
      ->add_option("--sample", flags->sample,
                   "at the end, draw so many tokens of text from the trained weights")
      ->check(whole_number_from(0));
  command->add_flag("--profile", flags->profile,
                    "time every kernel of the last steps: a table, profile.json, and in the trace");
  command->add_flag(
      "--resume", flags->source.resumes,
      "go on from the newest valid checkpoint of output.dir; also with other ranks or schedules");
  command->add_flag("--print-config", flags->print_config, "print the resolved run file and end");
  command->add_flag("--dry-run", flags->dry_run, "check everything, print the start table and end");
  command->allow_extras();
  command->footer("Each key of the run file can be given here too, as --section.key VALUE:\n\n" +
                  run::options_help());
  command->callback([command, flags, &exit_code] {
    flags->source.overrides = command->remaining();
    exit_code = train(*flags);
  });
}

}  // namespace penstock::cli
