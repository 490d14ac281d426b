// SPDX-License-Identifier: Apache-2.0
// The run file: what was read and printed reads the same again.
#include <stdexcept>

#include "base/error.h"
#include "cli/options_table.h"
#include "cli/run_file.h"
#include "fuzz/driver.h"

namespace penstock::cli {
namespace {

std::string printed(std::string_view text) {
  train::RunOptions options;
  const OptionTable table = train::describe(options);
  read_toml(text, "fuzz", table);
  return print_toml(table);
}

bool take(std::string_view input) {
  try {
    const std::string once = printed(input);
    if (printed(once) != once) throw std::logic_error("printing and parsing are not inverse");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::cli::take); }
