// SPDX-License-Identifier: Apache-2.0
// penstock check: is a schedule, or a program, legal?
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/schedule_flags.h"
#include "files/mapped_file.h"
#include "report/grid.h"
#include "schedule/check/check.h"
#include "schedule/program_text.h"
#include "schedule/text.h"

namespace penstock::cli {
namespace {

using schedule::Finding;

std::string to_json(const std::vector<Finding>& findings, bool with_slice) {
  std::string json = "{\"legal\": " + std::string(findings.empty() ? "true" : "false") + ", \"findings\": [";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    json += (i ? ",\n  " : "\n  ") + std::string("{\"rule\": ") +
            json_quote(schedule::name_of(finding.rule)) + ", \"device\": " + std::to_string(finding.device) +
            ", \"position\": " + std::to_string(finding.position) +
            ", \"action\": " + json_quote(schedule::to_token(finding.action, with_slice)) +
            ", \"text\": " + json_quote(finding.text) + "}";
  }
  return json + (findings.empty() ? "]}\n" : "\n]}\n");
}

void print(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::cout << schedule::name_of(finding.rule) << ": " << finding.text << "\n";
  }
}

Exit check_program(const std::string& text, const std::string& path, bool json) {
  const schedule::Program program = schedule::parse_program(text, path);
  const auto findings = schedule::check(program);
  if (json) {
    std::cout << to_json(findings, schedule::is_sliced(program));
  } else if (findings.empty()) {
    std::cout << "legal program: " << counted(program.device_count(), "device") << ", "
              << counted(program.stages, "stage") << ", " << counted(program.micro_batches(), "micro-batch")
              << "\n";
  } else {
    print(findings);
  }
  return findings.empty() ? Exit::Done : Exit::No;
}

Exit check_schedule(const std::string& text, const std::string& path, bool json) {
  const schedule::Schedule schedule = schedule::parse_csv(text, path);
  const auto findings = schedule::check(schedule);
  if (json) {
    std::cout << to_json(findings, schedule::is_sliced(schedule));
  } else if (findings.empty()) {
    std::cout << "legal: " << counted(schedule.device_count(), "device") << ", "
              << counted(schedule.stages, "stage") << ", " << counted(schedule.micro_batches(), "micro-batch")
              << "\n";
  } else {
    print(findings);
    std::cout << "\n" << report::marked_grid(schedule, findings, {.most_columns = 160});
  }
  return findings.empty() ? Exit::Done : Exit::No;
}

}  // namespace

void add_check_command(CLI::App& program, Exit& exit_code) {
  struct Flags {
    std::string file;
    bool json = false;
    bool program = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("check",
                                             "Check whether a schedule is legal. Exit 0: yes, 1: no, 2: "
                                             "unreadable.");
  command->add_option("file", flags->file, "a schedule as CSV")->required();
  command->add_flag("--json", flags->json, "findings as JSON on stdout");
  command->add_flag("--program", flags->program, "the file is a program, as printed by show --program");
  command->callback([flags, &exit_code] {
    const std::string text = files::read_text(flags->file, kLongestSchedule);
    exit_code = (flags->program ? check_program : check_schedule)(text, flags->file, flags->json);
  });
}

}  // namespace penstock::cli
