// SPDX-License-Identifier: Apache-2.0
// The Pareto front of a search: least time by memory.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "plan/search.h"

namespace penstock::plan {

// The fastest candidate of each narrow band of memory: small, but enough for a Pareto front.
class Front {
 public:
  explicit Front(double limit) : limit_(limit) {}

  void add(const Candidate& candidate) {
    const double share = static_cast<double>(candidate.memory.fullest.total()) / limit_;
    auto& place = bands_[std::min(kBands - 1, static_cast<std::size_t>(share * kBands))];
    if (!place || is_faster(candidate, *place)) place = candidate;
  }
  void add(const Front& other) {
    for (const auto& band : other.bands_) {
      if (band) add(*band);
    }
  }
  std::vector<Candidate> ascending() const {
    std::vector<Candidate> front;
    for (const auto& band : bands_) {
      if (band && (front.empty() || rounded_step(*band) < rounded_step(front.back()))) front.push_back(*band);
    }
    return front;
  }

 private:
  static constexpr std::size_t kBands = 64;
  double limit_;
  std::array<std::optional<Candidate>, kBands> bands_;
};

}  // namespace penstock::plan
