// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <cstdio>
#include <exception>

#include "cli/commands.h"

namespace penstock::cli {
namespace {

int fail(const char* kind, const char* text, Exit exit_code) {
  std::fprintf(stderr, "penstock: %s%s\n", kind, text);
  return static_cast<int>(exit_code);
}

// CLI11 reports --help as an exception too; its text goes to stdout and is no failure.
int stop_parsing(const CLI::App& program, const CLI::ParseError& stop) {
  if (stop.get_exit_code() == 0) return program.exit(stop);
  return fail("", (std::string(stop.what()) + " (see penstock --help)").c_str(), Exit::WrongInput);
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
  try {
    program.parse(argc, argv);
    return static_cast<int>(exit_code);
  } catch (const CLI::ParseError& stop) {
    return stop_parsing(program, stop);
  } catch (const InputError& error) {
    return fail("", error.what(), Exit::WrongInput);
  } catch (const NoAnswer& error) {
    return fail("", error.what(), Exit::No);
  } catch (const RunError& error) {
    return fail("", error.what(), Exit::Failed);
  } catch (const std::exception& error) {
    return fail("", error.what(), Exit::Failed);
  }
}

}  // namespace penstock::cli
