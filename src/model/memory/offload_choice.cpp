// SPDX-License-Identifier: Apache-2.0
#include "model/memory/offload_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace penstock::model {
namespace {

constexpr Bytes kLine = 64;
constexpr Bytes kMostCells = 1'000'000;

// Number of tensors of each size, largest size first.
using Counts = std::map<Bytes, int, std::greater<>>;

// Selects how many of each size to take, for the greatest sum that does not exceed `limit`.
class SubsetSum {
 public:
  SubsetSum(const Counts& counts, Bytes limit) : counts_(counts) {
    for (const auto& [size, count] : counts) unit_ = std::gcd(unit_, size);
    cells_ = limit / unit_;
  }

  bool is_small() const { return cells_ * static_cast<Bytes>(counts_.size()) <= kMostCells; }

  Counts solve() {
    // rows[k][s]: number of the k-th size in a sum of s units with sizes 0..k; -1: unreachable.
    std::vector<std::vector<std::int32_t>> rows;
    std::vector<bool> reached(static_cast<std::size_t>(cells_) + 1, false);
    reached[0] = true;
    for (const auto& [size, count] : counts_) {
      rows.push_back(row(reached, size / unit_, count));
      for (std::size_t s = 0; s < reached.size(); ++s) reached[s] = rows.back()[s] >= 0;
    }
    Bytes sum = cells_;
    while (!reached[sum]) --sum;
    Counts taken;
    auto size = counts_.rbegin();
    for (auto last = rows.rbegin(); last != rows.rend(); ++last, ++size) {
      const std::int32_t count = (*last)[sum];
      taken[size->first] = count;
      sum -= count * (size->first / unit_);
    }
    return taken;
  }

 private:
  // The fewest tensors of this size that reach each sum, starting from sums reached without it.
  static std::vector<std::int32_t> row(const std::vector<bool>& reached, Bytes step, int count) {
    std::vector<std::int32_t> fewest(reached.size(), -1);
    for (std::size_t s = 0; s < reached.size(); ++s) {
      if (reached[s]) {
        fewest[s] = 0;
      } else if (s >= static_cast<std::size_t>(step)) {
        const std::int32_t before = fewest[s - static_cast<std::size_t>(step)];
        if (before >= 0 && before < count) fewest[s] = before + 1;
      }
    }
    return fewest;
  }

  const Counts& counts_;
  Bytes unit_ = 0;
  Bytes cells_ = 0;
};

Counts largest_first(const Counts& counts, Bytes limit) {
  Counts taken;
  for (const auto& [size, count] : counts) {
    taken[size] = static_cast<int>(std::min<Bytes>(count, limit / size));
    limit -= taken[size] * size;
  }
  return taken;
}

}  // namespace

Bytes leaving_bytes(Bytes total, double share) {
  PENSTOCK_CHECK(share >= 0 && share <= 1, "a share is from 0 to 1");
  if (share == 1) return total;
  return std::min(total,
                  static_cast<Bytes>(std::llround(static_cast<double>(total) * share / kLine)) * kLine);
}

std::vector<Bytes> choose_leaving(std::span<const Bytes> sizes, Bytes leaving) {
  Counts counts;
  for (const Bytes size : sizes) {
    if (size > 0) ++counts[size];
  }
  if (counts.empty() || leaving == 0) {
    PENSTOCK_CHECK(leaving == 0, "no more leaves than there is");
    return std::vector<Bytes>(sizes.size(), 0);
  }
  SubsetSum subset(counts, leaving);
  Counts taken = subset.is_small() ? subset.solve() : largest_first(counts, leaving);
  std::vector<Bytes> chosen(sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 || taken[sizes[i]]-- <= 0) continue;
    chosen[i] = sizes[i];
    leaving -= sizes[i];
  }
  for (std::size_t i = 0; i < sizes.size() && leaving > 0; ++i) {
    if (chosen[i] > 0 || sizes[i] <= leaving) continue;
    chosen[i] = std::exchange(leaving, 0);
  }
  PENSTOCK_CHECK(leaving == 0, "no more leaves than there is");
  return chosen;
}

}  // namespace penstock::model
