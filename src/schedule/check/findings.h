// SPDX-License-Identifier: Apache-2.0
// Collects the findings of check(). Keeps only the first `limit`; rules test full() before they form texts.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "schedule/check/check.h"

namespace penstock::schedule {

class Findings {
 public:
  explicit Findings(std::size_t limit) : limit_(limit) {
    PENSTOCK_CHECK(limit > 0, "without room for a finding everything would look legal");
  }

  bool full() const { return found_.size() >= limit_; }
  std::size_t count() const { return found_.size(); }

  void add(Finding finding) {
    if (!full()) found_.push_back(std::move(finding));
  }

  std::vector<Finding> take() { return std::move(found_); }

 private:
  std::size_t limit_;
  std::vector<Finding> found_;
};

// "device 1, position 5"
inline std::string place_text(int device, int position) {
  return "device " + std::to_string(device) + ", position " + std::to_string(position);
}

}  // namespace penstock::schedule
