// SPDX-License-Identifier: Apache-2.0
// penstock explain: explains an existing configuration of another trainer.
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "files/mapped_file.h"
#include "plan/trainers/explain.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestJob = 1 << 20;

Exit explain(const plan::Today& today) {
  const plan::Explained explained = plan::explain_configuration(today);
  std::cout << explained.text;
  return explained.fits ? Exit::Done : Exit::No;
}

}  // namespace

void add_explain_command(CLI::App& program, Exit& exit_code) {
  struct Flags {
    plan::Today today;
    std::string job;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("explain",
                                             "Explain what a Megatron-LM or torchtitan configuration takes, "
                                             "what limits it, and what would help. Exit 1: it does not fit.");
  CLI::Option* megatron = command->add_option(
      "--megatron", flags->today.megatron, "Megatron-LM's arguments in one string: \"--num-layers 80 ...\"");
  command->add_option("--torchtitan", flags->job, "a torchtitan job file (TOML)")->excludes(megatron);
  command->add_option("--gpus", flags->today.gpus, "total number of devices (world size)")
      ->check(whole_number_from(1))
      ->required();
  command->add_option("--hardware", flags->today.hardware,
                      "name of a file in hardware/, or a path; default h100");
  command->add_option("--memory-limit", flags->today.limit, "maximum bytes per device, as in 70GB");
  command->callback([flags, &exit_code] {
    require(!flags->today.megatron.empty() || !flags->job.empty(),
            "the configuration is missing; give --megatron \"ARGUMENTS\" or --torchtitan FILE");
    if (!flags->job.empty()) {
      flags->today.torchtitan = files::read_text(flags->job, kLongestJob);
      flags->today.origin = flags->job;
    }
    exit_code = explain(flags->today);
  });
}

}  // namespace penstock::cli
