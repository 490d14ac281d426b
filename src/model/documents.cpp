// SPDX-License-Identifier: Apache-2.0
#include "model/documents.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/whole.h"

namespace penstock::model {
namespace {

// 1 + 2 + ... + count; 0 for a negative count.
double triangle(Tokens count) {
  const auto number = static_cast<double>(std::max<Tokens>(count, 0));
  return number * (number + 1) / 2;
}

// Causal pairs of query and key ranges [first, end).
double causal_pairs(Tokens first_query, Tokens end_query, Tokens first_key, Tokens end_key) {
  if (first_query >= end_query || first_key >= end_key) return 0;
  // Query q has max(min(q + 1, end_key) - first_key, 0) keys.
  const auto up_to = [&](Tokens end) {  // queries below `end`
    return triangle(end - first_key) - triangle(end - end_key);
  };
  return up_to(end_query) - up_to(first_query);
}

// The cumulative work before each multiple of `unit`; the last entry is the total.
std::vector<double> work_up_to(const Documents& documents, Tokens unit, const TokenWork& work) {
  const Tokens tokens = sequence_length(documents);
  std::vector<double> up_to(ceil_div(tokens, unit) + 1);
  for (const std::vector<Tokens>& lengths : documents) {
    Tokens begin = 0;
    for (const Tokens length : lengths) {
      const Tokens end = begin + length;
      for (Tokens from = begin; from < end;) {  // the document's part in each unit
        const Tokens to = std::min(end, (from / unit + 1) * unit);
        up_to[from / unit + 1] +=
            work.of(static_cast<double>(to - from), triangle(to - begin) - triangle(from - begin));
        from = to;
      }
      begin = end;
    }
  }
  std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
  return up_to;
}

// The ends of n slices, in units. Each slice is as long as `bound` allows while leaving a unit for each later
// one. Returns nullopt if the slices do not reach the end.
std::optional<std::vector<Tokens>> ends_within(const std::vector<double>& up_to, int n, double bound) {
  const Tokens units = std::ssize(up_to) - 1;
  std::vector<Tokens> ends;
  Tokens begin = 0;
  for (int slice = 0; slice < n; ++slice) {
    const auto beyond = std::upper_bound(up_to.begin() + begin + 1, up_to.end(), up_to[begin] + bound);
    const Tokens most = std::ssize(up_to) - (up_to.end() - beyond) - 1;
    begin = std::clamp(most, begin + 1, units - (n - 1 - slice));
    ends.push_back(begin);
  }
  if (begin < units) return {};
  return ends;
}

}  // namespace

Tokens sequence_length(const Documents& documents) {
  PENSTOCK_CHECK(!documents.empty(), "a micro-batch has sequences");
  return std::accumulate(documents.front().begin(), documents.front().end(), Tokens{0});
}

double attended_pairs(const Documents& documents, const TokenRange& queries, const TokenRange& keys) {
  const Tokens end_query = queries.begin + queries.length, end_key = keys.begin + keys.length;
  double pairs = 0;
  for (const std::vector<Tokens>& lengths : documents) {
    Tokens begin = 0;
    for (const Tokens length : lengths) {
      if (begin >= end_query || begin >= end_key) break;
      pairs += causal_pairs(std::max(queries.begin, begin), std::min(end_query, begin + length),
                            std::max(keys.begin, begin), std::min(end_key, begin + length));
      begin += length;
    }
  }
  return pairs;
}

std::vector<double> pairs_with_earlier(const Documents& documents, const TokenRange& queries,
                                       std::span<const TokenRange> keys) {
  std::vector<double> pairs(keys.size());
  for (const std::vector<Tokens>& lengths : documents) {
    // Only one document has tokens both before the queries and among them.
    Tokens begin = 0;
    std::size_t document = 0;
    while (begin + lengths[document] <= queries.begin) begin += lengths[document++];
    const Tokens end = std::min(begin + lengths[document], queries.begin + queries.length);
    const auto asked = static_cast<double>(end - queries.begin);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Tokens read = keys[i].begin + keys[i].length - std::max(keys[i].begin, begin);
      pairs[i] += asked * static_cast<double>(std::max<Tokens>(read, 0));
    }
  }
  return pairs;
}

std::vector<TokenRange> cut_by_work(const Documents& documents, int n, Tokens unit, const TokenWork& work) {
  const Tokens tokens = sequence_length(documents);
  const std::vector<TokenRange> equal = cut_into_slices(tokens, n, unit);  // throws if n is too large
  const std::vector<double> up_to = work_up_to(documents, unit, work);
  double least = 0, enough = up_to.back();
  std::vector<Tokens> ends = ends_within(up_to, n, enough).value();
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const double bound = (least + enough) / 2;
    if (auto found = ends_within(up_to, n, bound)) {
      ends = std::move(*found);
      enough = bound;
    } else {
      least = bound;
    }
  }
  std::vector<TokenRange> ranges;
  Tokens begin = 0;
  for (const Tokens end : ends) {
    ranges.push_back({begin, std::min(end * unit, tokens) - begin});
    begin += ranges.back().length;
  }
  return ranges;
}

}  // namespace penstock::model
