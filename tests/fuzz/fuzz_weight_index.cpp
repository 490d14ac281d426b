// SPDX-License-Identifier: Apache-2.0
// The index of a model over several files: what was read and printed reads the same again.
#include <stdexcept>

#include "files/model_weights.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

void take(std::string_view input) {
  const auto files = parse_weight_map(input, "fuzz");
  for (const auto& [tensor, file] : files) {
    if (file.empty() || file.find('/') != file.npos) throw std::logic_error("a file outside the folder");
  }
  if (parse_weight_map(print_weight_map(files, 1), "fuzz") != files)
    throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
