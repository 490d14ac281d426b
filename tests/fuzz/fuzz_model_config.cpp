// SPDX-License-Identifier: Apache-2.0
// config.json in Hugging Face's form: what was read and printed reads the same again.
#include <stdexcept>

#include "files/model_config.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

void take(std::string_view input) {
  const model::Shape shape = parse_model_config(input, "fuzz");
  const std::string printed = print_model_config(shape, {});
  if (print_model_config(parse_model_config(printed, "fuzz"), {}) != printed)
    throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
