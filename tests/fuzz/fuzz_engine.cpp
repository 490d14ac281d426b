// SPDX-License-Identifier: Apache-2.0
// Engine files: what was read and printed reads the same again.
#include <stdexcept>

#include "base/option_text.h"
#include "files/option_file.h"
#include "fuzz/driver.h"
#include "plan/engine_file.h"

namespace penstock::plan {
namespace {

std::string printed(std::string_view text) {
  NamedEngine engine;
  OptionTable table;
  describe(engine, table);
  files::read_toml(text, "fuzz", table);
  return print_toml(table);
}

void take(std::string_view input) {
  const std::string once = printed(input);
  if (printed(once) != once) throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::plan

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::plan::take); }
