// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood for rows of logits, whole or sharded by columns
// (kernels/cross_entropy.h, kernels/sharded_softmax.h).
#pragma once

#include <limits>

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// For the logits so far: the greatest, and the sum of exp(logit − greatest). The sum is NaN if a logit is.
template <class Number>
struct Softmax {
  Number greatest;
  Number sum;
};

template <class Number>
PENSTOCK_BOTH Softmax<Number> joined(const Softmax<Number>& a, const Softmax<Number>& b) {
  if (b.sum == 0) return a;
  if (a.sum == 0) return b;
  const Number greatest = a.greatest > b.greatest ? a.greatest : b.greatest;
  return {greatest, a.sum * std::exp(a.greatest - greatest) + b.sum * std::exp(b.greatest - greatest)};
}

// One pass over a row: for each pack first its greatest logit, then its exponentials.
template <int kWidth, class Element, int kLanes>
PENSTOCK_BOTH Softmax<Accumulator<Element>> softmax_of(const Lanes<kLanes>& lanes, const Element* row,
                                                       std::int64_t packs) {
  using Number = Accumulator<Element>;
  const Softmax<Number> none{-std::numeric_limits<Number>::infinity(), Number(0)};
  return lanes.reduce(
      packs, none,
      [&](std::int64_t k) {
        const auto x = load<kWidth>(row, k);
        Number greatest = x[0];
        for (int i = 1; i < kWidth; ++i) greatest = x[i] > greatest ? x[i] : greatest;
        Number sum = 0;
        for (int i = 0; i < kWidth; ++i) sum += std::exp(x[i] - greatest);
        return Softmax<Number>{greatest, sum};
      },
      [](const Softmax<Number>& a, const Softmax<Number>& b) { return joined(a, b); });
}

// Row n: its loss; overwrites the logits with their gradient if with_gradient.
template <class Element, int kWidth>
struct LossRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  Element* logits;  // [rows, vocabulary]
  const std::int64_t* targets;
  double* losses;
  std::int64_t vocabulary;
  double scale;  // gradient_scale
  bool with_gradient;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    Element* x = logits + row * vocabulary;
    const std::int64_t target = targets[row], packs = vocabulary / kWidth;
    if (target < 0) {
      lanes.once([&] { losses[row] = 0; });
      if (with_gradient) lanes.each(packs, [&](std::int64_t k) { store(x, k, Pack<Element, kWidth>{}); });
      return;
    }
    const auto softmax = softmax_of<kWidth>(lanes, x, packs);
    const Number logit = Number(x[target]);
    lanes.once([&] { losses[row] = double(std::log(softmax.sum) + (softmax.greatest - logit)); });
    if (!with_gradient) return;
    lanes.wait();  // all lanes have read the target's logit
    const Number factor = Number(scale) / softmax.sum;
    lanes.each(packs, [&](std::int64_t k) {
      const auto v = load<kWidth>(x, k);
      store(x, k, packed<Element, kWidth>([&](int i) {
              const Number share = std::exp(v[i] - softmax.greatest) * factor;
              return k * kWidth + i == target ? share - Number(scale) : share;
            }));
    });
  }
};

// Row n: the three statistics of a shard's columns (kernels/sharded_softmax.h).
template <class Element, int kWidth>
struct ShardStatisticsRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  const Element* logits;  // [rows, held]; columns from `count` on are padding
  const std::int64_t* targets;
  Number* statistics;  // [3, rows]
  std::int64_t rows, held, count, begin;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const Element* x = logits + row * held;
    auto softmax = softmax_of<kWidth>(lanes, x, count / kWidth);
    softmax = joined(softmax, softmax_of<1>(lanes, x + count / kWidth * kWidth, count % kWidth));
    const std::int64_t target = targets[row] - begin;
    const bool here = target >= 0 && target < count;
    lanes.once([&] {
      statistics[row] = softmax.greatest;
      statistics[rows + row] = softmax.sum;
      statistics[2 * rows + row] = here ? Number(x[target]) : Number(0);
    });
  }
};

// Group g, tokens [kTokens·g, ...): each token's softmax over all shards in rank order, and its loss.
template <class Number>
struct CombineTokens {
  static constexpr int kLanes = kWarp;
  static constexpr std::int64_t kTokens = kWarp;

  const Number* statistics;  // [parts, 3, tokens]
  const std::int64_t* targets;
  Number* scale;  // [2, tokens]
  double* losses;
  std::int64_t parts, tokens, held;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t group) const {
    const std::int64_t first = group * kTokens;
    lanes.each(kTokens < tokens - first ? kTokens : tokens - first,
               [&](std::int64_t i) { one_token(first + i); });
  }

 private:
  PENSTOCK_BOTH Number of(std::int64_t part, int which, std::int64_t token) const {
    return statistics[(part * 3 + which) * tokens + token];
  }
  PENSTOCK_BOTH void one_token(std::int64_t token) const {
    Number greatest = of(0, 0, token), sum = 0;
    for (std::int64_t part = 1; part < parts; ++part)
      greatest = greatest < of(part, 0, token) ? of(part, 0, token) : greatest;
    for (std::int64_t part = 0; part < parts; ++part)
      sum += of(part, 1, token) * std::exp(of(part, 0, token) - greatest);
    scale[token] = greatest;
    scale[tokens + token] = sum;
    const std::int64_t target = targets[token];
    losses[token] = target < 0 ? 0.0 : double(std::log(sum) + (greatest - of(target / held, 2, token)));
  }
};

// Row n: overwrites a shard's logits with their gradient; padding and rows without a target become zero.
template <class Element, int kWidth>
struct ShardGradientRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  Element* logits;  // [rows, held]
  const std::int64_t* targets;
  const Number* softmax;  // [2, rows]
  std::int64_t rows, held, count, begin;
  double scale;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    Element* x = logits + row * held;
    const std::int64_t target = targets[row];
    const Number greatest = softmax[row];
    const Number factor = target < 0 ? Number(0) : Number(scale) / softmax[rows + row];
    lanes.each(held / kWidth, [&](std::int64_t k) {
      const auto v = load<kWidth>(x, k);
      store(x, k, packed<Element, kWidth>([&](int i) {
              const std::int64_t column = k * kWidth + i;
              if (target < 0 || column >= count) return Number(0);
              const Number share = std::exp(v[i] - greatest) * factor;
              return column == target - begin ? share - Number(scale) : share;
            }));
    });
  }
};

}  // namespace penstock::nn::kernels::cuda
