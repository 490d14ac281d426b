// SPDX-License-Identifier: Apache-2.0
// Which edges of the code an input reaches, and the inputs that reach new ones. Needs code that was compiled
// with -fsanitize-coverage=trace-pc (the preset coverage); without it no input has a feature.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::fuzz {

// A pair of basic blocks that ran one after the other, and how often (1, 2, 3, 4, 8, 16, 32, 128 times or
// more). The number is the same in every process of a build.
using Feature = std::uint32_t;

void begin_coverage();
// Features covered since begin_coverage(), ascending.
std::vector<Feature> covered_features();

// Inputs by the features that they were the first to reach.
class NewInputs {
 public:
  // The features count as reached.
  void know(const std::vector<Feature>& features);
  // Keeps an input that reaches a new one. Returns whether it does.
  bool note(const std::string& input, std::vector<Feature> features);
  // At most so many of the kept: each the one that adds most features to those before it and to the known
  // ones, the shorter of equals; none that adds nothing.
  std::vector<std::string> choose(std::size_t most) const;

 private:
  struct Kept {
    std::string input;
    std::vector<Feature> features;
  };

  std::vector<bool> known_, reached_;
  std::vector<Kept> kept_;
};

}  // namespace penstock::fuzz
