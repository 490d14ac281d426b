// SPDX-License-Identifier: Apache-2.0
#include "train/data/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/random.h"

namespace penstock::train {
namespace {

// Adjacent draws that run together.
struct Part {
  std::int64_t room = 0;  // draws of this window
  double work = 0;
  std::vector<std::int64_t> samples;
};

// Splits the draws first .. first + count - 1 into parts at multiples of `size` in the whole sequence. Draws
// of the first and last part that are outside count with the mean.
std::vector<Part> parts_of(std::int64_t first, std::int64_t count, std::int64_t size, double mean) {
  std::vector<Part> parts;
  for (std::int64_t at = first; at < first + count;) {
    const std::int64_t end = std::min((at / size + 1) * size, first + count);
    parts.push_back({.room = end - at, .work = mean * static_cast<double>(size - (end - at)), .samples = {}});
    at = end;
  }
  return parts;
}

// `key`: of the order in which parts with equal work get the next sample. In their own order the first parts
// of every window would get what the last do not.
void share_out(std::vector<std::int64_t> samples, std::span<const double> work, std::uint64_t key,
               std::vector<Part>& parts) {
  const auto work_of = [&](std::int64_t sample) { return work[static_cast<std::size_t>(sample)]; };
  std::ranges::stable_sort(samples, std::greater(), work_of);
  using Place = std::tuple<double, std::uint64_t, std::size_t>;  // work, random, index
  std::priority_queue<Place, std::vector<Place>, std::greater<>> open;
  for (std::size_t part = 0; part < parts.size(); ++part)
    open.emplace(parts[part].work, random_bits(key, part), part);
  for (const std::int64_t sample : samples) {
    const auto [least, random, index] = open.top();
    open.pop();
    Part& part = parts[index];
    part.samples.push_back(sample);
    part.work += work_of(sample);
    if (std::ssize(part.samples) < part.room) open.emplace(part.work, random, index);
  }
}

}  // namespace

std::vector<std::int64_t> balanced(std::int64_t first, std::span<const double> work,
                                   const BatchShares& shares) {
  const double mean = std::accumulate(work.begin(), work.end(), 0.0) /
                      static_cast<double>(std::max<std::size_t>(work.size(), 1));
  std::vector<std::int64_t> all(work.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<Part> replicas = parts_of(first, std::ssize(work), shares.batch / shares.replicas, mean);
  const auto key = static_cast<std::uint64_t>(first);
  share_out(std::move(all), work, key, replicas);
  std::vector<std::int64_t> order;
  for (Part& replica : replicas) {
    std::vector<Part> micro_batches =
        parts_of(first + std::ssize(order), replica.room, shares.micro_batch, mean);
    share_out(std::move(replica.samples), work, stream_key(key, order.size()), micro_batches);
    for (const Part& part : micro_batches)
      order.insert(order.end(), part.samples.begin(), part.samples.end());
  }
  return order;
}

}  // namespace penstock::train
