// SPDX-License-Identifier: Apache-2.0
// What a copy of a rank's states in a host's memory says of itself: what was read and written reads the same
// again, and its ranges lie inside their tensors.
#include <stdexcept>

#include "fuzz/driver.h"
#include "train/checkpoint/state_copy.h"

namespace penstock::train {
namespace {

void take(std::string_view input) {
  const StateCopy copy = parse_state_copy(input, "fuzz");
  for (const CopiedTensor& tensor : copy.tensors) {
    if (tensor.bytes() > tensor.whole_bytes()) throw std::logic_error("more of a tensor than there is");
  }
  if (parse_state_copy(to_json(copy), "fuzz") != copy)
    throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
