// SPDX-License-Identifier: Apache-2.0
// checkpoint.json. The input is sealed first: its checksum would refuse every mutation.
#include <stdexcept>

#include "files/checksum.h"
#include "fuzz/driver.h"
#include "train/checkpoint/facts.h"

namespace penstock::train {
namespace {

std::string sealed(std::string_view input) {
  std::string text(input.substr(0, input.find("  \"checksum\"")));
  return text + "  \"checksum\": \"" + files::checksum_text(files::checksum(text)) + "\"\n}\n";
}

void take(std::string_view input) {
  const std::string once = to_json(parse_checkpoint_facts(sealed(input), "fuzz"));
  if (to_json(parse_checkpoint_facts(once, "fuzz")) != once)
    throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
