// SPDX-License-Identifier: Apache-2.0
// profile.json: the calls of kernels.
#include <stdexcept>

#include "fuzz/driver.h"
#include "train/record/named_profile.h"

namespace penstock::train {
namespace {

void take(std::string_view input) {
  std::size_t calls = 0;
  for (const NamedProfile& profile : parse_profiles(input, "fuzz")) {
    for (const auto& device : profile.devices) calls += device.size();
  }
  if (calls > input.size()) throw std::logic_error("more calls than bytes");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
