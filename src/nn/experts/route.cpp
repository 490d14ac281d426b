// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/route.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <numeric>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/work.h"

namespace penstock::nn {
namespace {

template <class Work>
void for_score_type(const at::Tensor& scores, Work&& work) {
  PENSTOCK_CHECK(scores.is_contiguous(), "kernels read contiguous rows");
  if (scores.scalar_type() == at::kDouble) return work(double{});
  PENSTOCK_CHECK(scores.scalar_type() == at::kFloat, "scores are in an accumulator type");
  work(float{});
}

// Finds the k greatest one by one, then sorts by index: k and E are small.
template <class Number>
void choose(const Number* scores, std::int64_t experts, std::int64_t k, std::int64_t* chosen) {
  for (std::int64_t slot = 0; slot < k; ++slot) {
    std::int64_t best = -1;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const bool taken = std::find(chosen, chosen + slot, expert) != chosen + slot;
      if (!taken && (best < 0 || scores[expert] > scores[best])) best = expert;
    }
    chosen[slot] = best;
  }
  std::sort(chosen, chosen + k);
}

void take_turns(std::int64_t token, std::int64_t experts, std::int64_t k, std::int64_t* chosen) {
  for (std::int64_t slot = 0; slot < k; ++slot) chosen[slot] = (token * k + slot) % experts;
  std::sort(chosen, chosen + k);
}

// Each expert's expected slots per token: k times its share, at most 1. The other experts get the excess.
std::vector<double> skewed_shares(std::int64_t experts, std::int64_t k, double skew) {
  std::vector<double> shares(static_cast<std::size_t>(experts));
  for (std::size_t expert = 0; expert < shares.size(); ++expert)
    shares[expert] = std::pow(static_cast<double>(expert + 1), -skew);
  auto left = static_cast<double>(k);
  for (auto first = shares.begin(); first != shares.end(); ++first) {  // descending
    *first = std::min(1.0, *first * left / std::accumulate(first, shares.end(), 0.0));
    left -= *first;
  }
  return shares;
}

// Systematic sampling (Madow 1949): k points at distance 1 on the cumulative shares. A share of at most 1
// contains at most one point. The first points are spread evenly over the tokens.
void sample(std::int64_t token, const std::vector<double>& shares, std::int64_t k, std::int64_t* chosen) {
  constexpr double kGolden = 0.6180339887498949;
  const double turns = static_cast<double>(token) * kGolden;
  double point = turns - std::floor(turns), sum = 0;
  std::int64_t slot = 0;
  const auto experts = std::ssize(shares);
  for (std::int64_t expert = 0; expert < experts && slot < k; ++expert) {
    sum += shares[static_cast<std::size_t>(expert)];
    const bool last_chance = experts - expert == k - slot;  // where rounding left the sum short of k
    if (sum <= point && !last_chance) continue;
    chosen[slot++] = expert;
    point += 1;
  }
}

template <class Number>
Number log_sum_exp(const Number* scores, std::int64_t experts) {
  const Number greatest = *std::max_element(scores, scores + experts);
  Number sum = 0;
  for (std::int64_t expert = 0; expert < experts; ++expert) sum += std::exp(scores[expert] - greatest);
  return greatest + std::log(sum);
}

// One token's part of a routing.
template <class Number>
struct Token {
  const Number* scores;
  const std::int64_t* chosen;
  const Number* weights;
  Number log_sum_exp;

  Token(const at::Tensor& all, const Routing& routing, std::int64_t token)
      : scores(all.const_data_ptr<Number>() + token * all.size(1)),
        chosen(routing.experts.const_data_ptr<std::int64_t>() + token * routing.experts.size(1)),
        weights(routing.weights.const_data_ptr<Number>() + token * routing.weights.size(1)),
        log_sum_exp(routing.log_sum_exp.const_data_ptr<Number>()[token]) {}

  Number share(std::int64_t expert) const { return std::exp(scores[expert] - log_sum_exp); }
};

}  // namespace

Routing route(const at::Tensor& scores, std::int64_t k, RouteWeights kind, const ForcedChoice& forced) {
  const std::int64_t tokens = scores.size(0), experts = scores.size(1);
  PENSTOCK_CHECK(k >= 1 && k <= experts, "a token has at least one expert and at most all");
  Routing routing{at::empty({tokens, k}, at::kLong), at::empty({tokens, k}, scores.options()),
                  at::empty({tokens}, scores.options())};
  const KernelTimer timer(Kernel::Route, kernels::memory_work(scores, routing.weights));
  const std::vector<double> shares =
      forced.on && forced.skew > 0 ? skewed_shares(experts, k, forced.skew) : std::vector<double>();
  const auto choose_for = [&](std::int64_t token, const auto* row, std::int64_t* chosen) {
    if (!forced.on) return choose(row, experts, k, chosen);
    shares.empty() ? take_turns(token, experts, k, chosen) : sample(token, shares, k, chosen);
  };
  for_score_type(scores, [&](auto number) {
    using Number = decltype(number);
    kernels::for_rows(tokens, experts * k, [&](std::int64_t token) {
      const Number* row = scores.const_data_ptr<Number>() + token * experts;
      std::int64_t* chosen = routing.experts.data_ptr<std::int64_t>() + token * k;
      choose_for(token, row, chosen);
      const Number all = log_sum_exp(row, experts);
      routing.log_sum_exp.data_ptr<Number>()[token] = all;
      Number whole = all;
      if (kind == RouteWeights::OfChosen) {
        std::vector<Number> own;
        for (std::int64_t slot = 0; slot < k; ++slot) own.push_back(row[chosen[slot]]);
        whole = log_sum_exp(own.data(), k);
      }
      Number* weights = routing.weights.data_ptr<Number>() + token * k;
      for (std::int64_t slot = 0; slot < k; ++slot) weights[slot] = std::exp(row[chosen[slot]] - whole);
    });
  });
  return routing;
}

at::Tensor route_backward(const at::Tensor& grad_weights, const at::Tensor& scores, const Routing& routing,
                          RouteWeights kind) {
  PENSTOCK_CHECK(grad_weights.is_contiguous(), "kernels read contiguous rows");
  const std::int64_t tokens = scores.size(0), experts = scores.size(1), k = routing.experts.size(1);
  at::Tensor grad_scores = at::empty_like(scores);
  const KernelTimer timer(Kernel::Route, kernels::memory_work(scores, grad_scores));
  for_score_type(scores, [&](auto number) {
    using Number = decltype(number);
    kernels::for_rows(tokens, experts, [&](std::int64_t index) {
      const Token<Number> token(scores, routing, index);
      const Number* grad = grad_weights.const_data_ptr<Number>() + index * k;
      const Number mean = std::inner_product(grad, grad + k, token.weights, Number(0));
      Number* out = grad_scores.data_ptr<Number>() + index * experts;
      for (std::int64_t expert = 0; expert < experts; ++expert)
        out[expert] = kind == RouteWeights::OfAll ? -token.share(expert) * mean : Number(0);
      for (std::int64_t slot = 0; slot < k; ++slot) {
        const Number own = kind == RouteWeights::OfAll ? grad[slot] : grad[slot] - mean;
        out[token.chosen[slot]] += token.weights[slot] * own;
      }
    });
  });
  return grad_scores;
}

void add_route_losses_backward(at::Tensor& grad_scores, const at::Tensor& scores, const Routing& routing,
                               const RouteLosses& losses) {
  const std::int64_t tokens = scores.size(0), experts = scores.size(1);
  const KernelTimer timer(Kernel::Route, kernels::memory_work(scores, grad_scores));
  for_score_type(scores, [&](auto number) {
    using Number = decltype(number);
    std::vector<Number> balance(losses.balance.begin(), losses.balance.end());
    balance.resize(static_cast<std::size_t>(experts));
    kernels::for_rows(tokens, experts, [&](std::int64_t index) {
      const Token<Number> token(scores, routing, index);
      Number mean = 0;
      for (std::int64_t expert = 0; expert < experts; ++expert) mean += token.share(expert) * balance[expert];
      const Number pull = Number(2 * losses.z) * token.log_sum_exp;  // d z·lse² / d lse
      Number* out = grad_scores.data_ptr<Number>() + index * experts;
      for (std::int64_t expert = 0; expert < experts; ++expert)
        out[expert] += token.share(expert) * (balance[expert] - mean + pull);
    });
  });
}

void add_shares(const at::Tensor& scores, const Routing& routing, std::span<double> shares) {
  PENSTOCK_CHECK(std::ssize(shares) == scores.size(1), "every expert has a share");
  for_score_type(scores, [&](auto number) {
    for (std::int64_t index = 0; index < scores.size(0); ++index) {
      const Token<decltype(number)> token(scores, routing, index);
      for (std::size_t expert = 0; expert < shares.size(); ++expert)
        shares[expert] += static_cast<double>(token.share(static_cast<std::int64_t>(expert)));
    }
  });
}

double sum_of_squares(const Routing& routing) {
  double sum = 0;
  for_score_type(routing.log_sum_exp, [&](auto number) {
    const auto* values = routing.log_sum_exp.const_data_ptr<decltype(number)>();
    for (std::int64_t token = 0; token < routing.log_sum_exp.size(0); ++token)
      sum += static_cast<double>(values[token]) * static_cast<double>(values[token]);
  });
  return sum;
}

}  // namespace penstock::nn
