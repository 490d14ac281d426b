// SPDX-License-Identifier: Apache-2.0
#include "train/data/samples.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace penstock::train {
namespace {

// Each piece of a packed sample attends within itself, each padding token only to itself.
Flops work_of(const Sample& sample, const Balance& balance) {
  Flops sum = 0;
  Tokens padding = balance.padded_to;
  for (const Piece& piece : sample.pieces) {
    const auto tokens = static_cast<double>(piece.length);
    sum += balance.work.of(tokens, tokens * (tokens + 1) / 2);
    padding -= piece.length;
  }
  const auto left = static_cast<double>(std::max<Tokens>(padding, 0));
  return sum + balance.work.of(left, left);
}

}  // namespace

std::int64_t Cut::samples(const Stretch& stretch) const {
  if (stretch.packing) return stretch.packing->samples();
  const std::int64_t tokens = stretch.end - stretch.begin - (full_targets ? 1 : 0);
  return std::max<std::int64_t>(0, tokens) / seq_len;
}

Samples::Samples(std::vector<Stretch> stretches, const Cut& cut, const Numbers& shares, bool shuffle,
                 std::uint64_t seed, const std::optional<Balance>& balance)
    : stretches_(std::move(stretches)),
      cut_(cut),
      before_{0},
      shuffle_(shuffle),
      seed_(seed),
      balance_(balance) {
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

std::vector<Sample> Samples::drawn(std::int64_t first, std::int64_t count) const {
  if (!balance_) return window(first, first + count);
  const std::int64_t epoch = mixture_ ? std::numeric_limits<std::int64_t>::max() : this->count();
  std::vector<Sample> samples;
  while (std::ssize(samples) < count) {
    const std::int64_t next = first + std::ssize(samples);
    const std::int64_t began = next / epoch * epoch, end_of_epoch = mixture_ ? epoch : began + epoch;
    const std::int64_t begin = began + (next - began) / balance_->window * balance_->window;
    std::vector<Sample> all = window(begin, std::min(begin + balance_->window, end_of_epoch));
    std::vector<double> work;
    for (const Sample& sample : all) work.push_back(work_of(sample, *balance_));
    const std::vector<std::int64_t> order = balanced(begin, work, balance_->shares);
    for (std::int64_t at = next - begin; at < std::ssize(all) && std::ssize(samples) < count; ++at)
      samples.push_back(std::move(all[static_cast<std::size_t>(order[static_cast<std::size_t>(at)])]));
  }
  return samples;
}

// The samples of these draws in epoch order.
std::vector<Sample> Samples::window(std::int64_t begin, std::int64_t end) const {
  std::vector<Sample> samples;
  for (; begin < end; ++begin) samples.push_back(at(begin));
  return samples;
}

Sample Samples::at(std::int64_t drawn) const {
  if (mixture_) {
    const auto [stretch, rank] = mixture_->at(drawn);
    return sample(stretch, in_order(rank, count(stretch), stream_key(seed_, stretch)));
  }
  const std::int64_t index = in_order(drawn, count(), seed_);
  const auto next = std::ranges::upper_bound(before_, index);
  const auto stretch = static_cast<std::size_t>(next - before_.begin() - 1);
  return sample(stretch, index - before_[stretch]);
}

// The sample at this position of the endless sequence of epochs.
std::int64_t Samples::in_order(std::int64_t drawn, std::int64_t samples, std::uint64_t key) const {
  const std::int64_t place = drawn % samples;
  if (!shuffle_) return place;
  const auto epoch = static_cast<std::uint64_t>(drawn / samples);
  const Permutation order(static_cast<std::uint64_t>(samples), stream_key(key, epoch));
  return static_cast<std::int64_t>(order.at(static_cast<std::uint64_t>(place)));
}

Sample Samples::sample(std::size_t stretch, std::int64_t index) const {
  const auto& [source, begin, end, packing] = stretches_[stretch];
  if (!packing) return {source, {{begin + index * cut_.seq_len, cut_.seq_len, cut_.full_targets}}};
  const std::span<const Piece> pieces = packing->sample(index);
  return {source, {pieces.begin(), pieces.end()}};
}

}  // namespace penstock::train
