// SPDX-License-Identifier: Apache-2.0
// Documents and conversations as lines of JSON.
#include <stdexcept>

#include "files/text_blocks.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

void take(std::string_view input) {
  static const JsonDocuments kDocuments;
  const auto whole = documents_of_json_lines(input, kDocuments, "fuzz", 1);
  std::size_t parted = 0;
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t length = first_block(rest, 64, true);
    parted += documents_of_json_lines(rest.substr(0, length), kDocuments, "fuzz", 1).size();
    rest.remove_prefix(length);
  }
  if (parted != whole.size()) throw std::logic_error("blocks have other documents than the whole");
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
