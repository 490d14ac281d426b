// SPDX-License-Identifier: Apache-2.0
// Hardware files: what was read and printed reads the same again.
#include <stdexcept>

#include "base/option_text.h"
#include "files/option_file.h"
#include "fuzz/driver.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {
namespace {

std::string printed(std::string_view text) {
  Hardware hardware;
  OptionTable table;
  describe(hardware, table);
  const Words given = files::read_toml(text, "fuzz", table);
  validate(hardware, "fuzz");
  assumed_speeds(hardware, given);
  return print_toml(table);
}

void take(std::string_view input) {
  const std::string once = printed(input);
  if (printed(once) != once) throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::sim

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::sim::take); }
