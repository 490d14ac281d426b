// SPDX-License-Identifier: Apache-2.0
// A target that allocates more than an input may: the driver must say so.
#include <vector>

#include "fuzz/driver.h"

namespace {

void take(std::string_view input) {
  std::vector<char> most((std::size_t{64} << 20) + 5 * input.size() + 1);
  most.back() = 'x';
}

}  // namespace

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, take); }
