// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_machine.h"

#include <memory>

#include "cli/commands.h"
#include "cli/input/number_flags.h"

namespace penstock::cli {

void add_profile_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command = program.add_subcommand(
      "profile", "Measure this machine, in under two minutes, and write its hardware file for plan.");
  command
      ->add_option("--ranks", flags->ranks,
                   "measure with so many ranks at work, threads of this process; default: 2 (1 on one core), "
                   "or one for each card; not under mpirun")
      ->check(whole_number_from(1));
  command->add_option("--threads", flags->threads, "of each rank; default: the cores over the ranks")
      ->check(whole_number_from(1));
  command->add_option("--out", flags->out,
                      "the hardware file; default: stdout, and kept in the cache folder for simulate");
  command->add_option("--name", flags->name, "what the file calls the machine; default this-machine");
  command->add_option("--precision", flags->precision,
                      "bf16 or f32, what will be trained in; default: bf16 where the processor has it");
  command->add_option("--device", flags->device, "cpu or cuda, what will be trained on; default cpu");
  command->add_flag("--quick", flags->quick,
                    "in less than a minute: fewer repeats, products in the one precision");
  command->add_option("--budget", flags->budget,
                      "seconds of repeats for each figure, 0: each once; default 0.15, with --quick 0.04");
  command->callback([flags, &exit_code] { exit_code = profile_machine(*flags); });
}

}  // namespace penstock::cli
