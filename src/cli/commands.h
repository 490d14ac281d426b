// SPDX-License-Identifier: Apache-2.0
// One function per command: adds the command and its flags to the program; when run, it sets `exit_code`.
#pragma once

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace penstock::cli {

void add_train_command(CLI::App& program, Exit& exit_code);
void add_plan_command(CLI::App& program, Exit& exit_code);
void add_show_command(CLI::App& program, Exit& exit_code);
void add_check_command(CLI::App& program, Exit& exit_code);
void add_data_command(CLI::App& program, Exit& exit_code);
void add_simulate_command(CLI::App& program, Exit& exit_code);
void add_profile_command(CLI::App& program, Exit& exit_code);
void add_convert_command(CLI::App& program, Exit& exit_code);
void add_report_command(CLI::App& program, Exit& exit_code);
void add_explain_command(CLI::App& program, Exit& exit_code);
void add_supervise_command(CLI::App& program, Exit& exit_code);
void add_man_command(CLI::App& program, Exit& exit_code);
void add_completion_command(CLI::App& program, Exit& exit_code);

}  // namespace penstock::cli
