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
                   "ranks that work during measurements, as threads of this process; default: 2 (1 on one "
                   "core), or one per GPU; not under mpirun")
      ->check(whole_number_from(1));
  command
      ->add_option("--threads", flags->threads, "threads per rank; default: the cores divided by the ranks")
      ->check(whole_number_from(1));
  command->add_option("--out", flags->out,
                      "hardware file to write; default: stdout, and kept in the cache folder for simulate");
  command->add_option("--name", flags->name, "name of the machine in the file; default: this-machine");
  command->add_option("--precision", flags->precision,
                      "precision of training, bf16 or f32; default: bf16 if the processor has it");
  command->add_option("--device", flags->device, "device of training, cpu or cuda; default: cpu");
  command->add_flag("--quick", flags->quick,
                    "finish in less than a minute: fewer repeats, products in one precision only");
  command->add_option("--budget", flags->budget,
                      "seconds of repeats per figure; 0: measure each once; default: 0.15, with --quick "
                      "0.04");
  command->callback([flags, &exit_code] { exit_code = profile_machine(*flags); });
}

}  // namespace penstock::cli
