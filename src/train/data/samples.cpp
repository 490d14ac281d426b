// SPDX-License-Identifier: Apache-2.0
#include "train/data/samples.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace penstock::train {

std::int64_t Cut::samples(const Stretch& stretch) const {
  const std::int64_t tokens = stretch.end - stretch.begin - (full_targets ? 1 : 0);
  return std::max<std::int64_t>(0, tokens) / seq_len;
}

Samples::Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
                 std::uint64_t seed)
    : stretches_(std::move(stretches)), cut_(cut), before_{0}, shuffle_(shuffle), seed_(seed) {
  for (const Stretch& stretch : stretches_) {
    PENSTOCK_CHECK(cut.samples(stretch) > 0, "every stretch has a sample");
    before_.push_back(before_.back() + cut.samples(stretch));
  }
  if (!shares.empty()) mixture_.emplace(shares);
}

std::int64_t Samples::distinct(std::int64_t limit) const {
  if (!mixture_) return std::min(limit, count());
  std::int64_t drawn = 0;
  while (drawn < limit && mixture_->at(drawn).rank < count(mixture_->at(drawn).source)) ++drawn;
  return drawn;
}

Samples::Place Samples::at(std::int64_t drawn) const {
  if (mixture_) {
    const auto [stretch, rank] = mixture_->at(drawn);
    return place(stretch, in_order(rank, count(stretch), stream_key(seed_, stretch)));
  }
  const std::int64_t sample = in_order(drawn, count(), seed_);
  const auto next = std::ranges::upper_bound(before_, sample);
  const auto stretch = static_cast<std::size_t>(next - before_.begin() - 1);
  return place(stretch, sample - before_[stretch]);
}

// The sample at this position of the endless sequence of epochs.
std::int64_t Samples::in_order(std::int64_t drawn, std::int64_t samples, std::uint64_t key) const {
  const std::int64_t place = drawn % samples;
  if (!shuffle_) return place;
  const auto epoch = static_cast<std::uint64_t>(drawn / samples);
  const Permutation order(static_cast<std::uint64_t>(samples), stream_key(key, epoch));
  return static_cast<std::int64_t>(order.at(static_cast<std::uint64_t>(place)));
}

Samples::Place Samples::place(std::size_t stretch, std::int64_t sample) const {
  return {stretches_[stretch].source, stretches_[stretch].begin + sample * cut_.seq_len};
}

}  // namespace penstock::train
