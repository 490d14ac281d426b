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

// `rank`: of parts with equal work those with less of it get the next sample first.
void share_out(std::vector<std::int64_t> samples, std::span<const double> work, std::vector<Part>& parts,
               const std::function<std::uint64_t(std::size_t)>& rank) {
  const auto work_of = [&](std::int64_t sample) { return work[static_cast<std::size_t>(sample)]; };
  std::ranges::stable_sort(samples, std::greater(), work_of);
  using Place = std::tuple<double, std::uint64_t, std::size_t>;  // work, rank, index
  std::priority_queue<Place, std::vector<Place>, std::greater<>> open;
  for (std::size_t part = 0; part < parts.size(); ++part) open.emplace(parts[part].work, rank(part), part);
  for (const std::int64_t sample : samples) {
    const std::size_t index = std::get<2>(open.top());
    open.pop();
    Part& part = parts[index];
    part.samples.push_back(sample);
    part.work += work_of(sample);
    if (std::ssize(part.samples) < part.room) open.emplace(part.work, rank(index), index);
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
  // In their own order the first batches of every window would get what the last do not. The replicas of a
  // batch stay neighbours: they get samples of about the same length.
  const auto replicas_of_a_batch = static_cast<std::size_t>(shares.replicas);
  share_out(std::move(all), work, replicas, [&](std::size_t part) {
    return random_bits(static_cast<std::uint64_t>(first), part / replicas_of_a_batch);
  });
  std::vector<std::int64_t> order;
  for (Part& replica : replicas) {
    std::vector<Part> micro_batches =
        parts_of(first + std::ssize(order), replica.room, shares.micro_batch, mean);
    share_out(std::move(replica.samples), work, micro_batches, [](std::size_t) { return 0; });
    for (const Part& part : micro_batches)
      order.insert(order.end(), part.samples.begin(), part.samples.end());
  }
  return order;
}

}  // namespace penstock::train
