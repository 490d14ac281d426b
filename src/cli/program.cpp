// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <exception>
#include <string>

#include "cli/commands.h"
#include "cli/tell.h"

namespace penstock::cli {
namespace {

int refuse(const std::string& text, Exit exit_code) {
  tell_once(text);
  return static_cast<int>(exit_code);
}

int fail(const std::exception& error) {
  tell(error.what());
  return static_cast<int>(Exit::Failed);
}

// CLI11 reports --help as an exception too; its text goes to stdout and is no failure.
int stop_parsing(const CLI::App& program, const CLI::ParseError& stop) {
  if (stop.get_exit_code() == 0) return program.exit(stop);
  return refuse(std::string(stop.what()) + " (see penstock --help)", Exit::WrongInput);
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App program(
      "Trains long-context transformers with pipelines of sequence slices, and tells beforehand how long a "
      "run takes and how much memory it needs.",
      "penstock");
  program.require_subcommand(1);
  Exit exit_code = Exit::Done;
  add_train_command(program, exit_code);
  add_simulate_command(program, exit_code);
  add_show_command(program, exit_code);
  add_check_command(program, exit_code);
  add_report_command(program, exit_code);
  try {
    program.parse(argc, argv);
    return static_cast<int>(exit_code);
  } catch (const CLI::ParseError& stop) {
    return stop_parsing(program, stop);
  } catch (const InputError& error) {
    return refuse(error.what(), Exit::WrongInput);
  } catch (const NoAnswer& error) {
    return refuse(error.what(), Exit::No);
  } catch (const std::exception& error) {
    return fail(error);
  }
}

}  // namespace penstock::cli
