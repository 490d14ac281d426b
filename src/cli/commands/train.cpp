// SPDX-License-Identifier: Apache-2.0
#include "cli/train/train.h"

#include <memory>

#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "run/options.h"

namespace penstock::cli {

void add_train_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = program.add_subcommand("train", "Train a model as a run file says.");
  command->add_option("file", flags->source.file, "the run file (TOML)")->required();
  command
      ->add_option("--ranks", flags->ranks,
                   "start this many ranks as threads of this process; not under mpirun")
      ->check(whole_number_from(1));
  command
      ->add_option("--sample", flags->sample,
                   "at the end, sample this many tokens of text from the trained weights")
      ->check(whole_number_from(0));
  command->add_flag("--profile", flags->profile,
                    "time every kernel of the last steps, for a table, profile.json and the trace");
  command->add_flag(
      "--resume", flags->source.resumes,
      "continue from the newest valid checkpoint of output.dir; also with other ranks or schedules");
  command->add_flag("--print-config", flags->print_config, "print the resolved run file and exit");
  command->add_flag("--dry-run", flags->dry_run, "check everything, print the start table and exit");
  command->allow_extras();
  command->footer("Each key of the run file can be given here too, as --section.key VALUE:\n\n" +
                  run::options_help());
  command->callback([command, flags, &exit_code] {
    flags->source.overrides = command->remaining();
    exit_code = train(*flags);
  });
}

}  // namespace penstock::cli
