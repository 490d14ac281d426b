// SPDX-License-Identifier: Apache-2.0
// Routing and the mixture of experts against a plain loop over experts under autograd.
#include "nn/experts/mixture.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>

#include "comm/threads.h"
#include "nn/reference_model.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::RouteWeights;

constexpr double kExact = 1e-12;

// The k greatest scores of a row, the lower index first among equals.
std::vector<std::int64_t> chosen_of(const at::Tensor& row, std::int64_t k) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(row.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::int64_t expert) { return row[expert].item<double>(); });
  order.resize(static_cast<std::size_t>(k));
  std::ranges::sort(order);
  return order;
}

TEST(Route, TakesTheGreatestScoresAndOfEqualOnesTheLowerIndex) {
  at::Tensor scores = random_tensor({50, 7}, at::kFloat, 3);
  scores[3].fill_(0.5);
  scores[4][2] = scores[4][6] = 9;
  scores[5][1] = scores[5][5] = -9;
  for (const std::int64_t k : {1, 2, 7}) {
    const nn::Routing routing = nn::route(scores, k, RouteWeights::OfChosen);
    for (std::int64_t token = 0; token < 50; ++token) {
      const auto wanted = chosen_of(scores[token], k);
      for (std::int64_t slot = 0; slot < k; ++slot)
        EXPECT_EQ(routing.experts[token][slot].item<std::int64_t>(), wanted[slot]) << token;
    }
    EXPECT_LT(routing.weights.sum(1).sub(1).abs().max().item<double>(), 1e-6);
  }
}

TEST(Route, ForcesTurnsAndSkewedShares) {
  const at::Tensor scores = random_tensor({6000, 6}, at::kFloat, 7);
  for (const std::int64_t k : {1, 2, 5, 6}) {
    for (const double skew : {0.0, 0.5, 2.0, 16.0}) {
      const nn::Routing routing =
          nn::route(scores, k, RouteWeights::OfChosen, nn::ForcedChoice{.on = true, .skew = skew});
      const std::vector<std::int64_t> counts = nn::order_by_expert(routing.experts, 6).counts;
      for (std::size_t e = 0; e + 1 < counts.size(); ++e) {
        SCOPED_TRACE(::testing::Message() << k << " of 6, skew " << skew << ", expert " << e);
        // Where neither expert has every token, their loads are as the powers of their numbers.
        const double ratio = std::pow((static_cast<double>(e) + 2) / (static_cast<double>(e) + 1), skew);
        const auto more = static_cast<double>(counts[e]), less = static_cast<double>(counts[e + 1]);
        if (more < 5990) {
          EXPECT_NEAR(more, less * ratio, 12 * ratio);
        } else {
          EXPECT_GE(more, less);
        }
      }
      const at::Tensor& experts = routing.experts;
      for (std::int64_t slot = 1; slot < k; ++slot)
        EXPECT_TRUE(experts.select(1, slot).gt(experts.select(1, slot - 1)).all().item<bool>());
    }
  }
}

TEST(ExpertOrder, KeepsTokensInOrderAndFindsThemAgain) {
  const at::Tensor scores = random_tensor({40, 5}, at::kFloat, 4);
  const nn::Routing routing = nn::route(scores, 3, RouteWeights::OfAll);
  const nn::ExpertOrder order = nn::order_by_expert(routing.experts, 5);
  const auto* tokens = order.tokens.const_data_ptr<std::int64_t>();
  std::int64_t row = 0;
  for (std::int64_t expert = 0; expert < 5; ++expert) {
    for (std::int64_t i = 0; i < order.counts[expert]; ++i, ++row) {
      if (i > 0) {
        EXPECT_LT(tokens[row - 1], tokens[row]);
      }
      bool found = false;
      for (std::int64_t slot = 0; slot < 3; ++slot) {
        const bool here = order.places[tokens[row]][slot].item<std::int64_t>() == row;
        found |= here && routing.experts[tokens[row]][slot].item<std::int64_t>() == expert;
      }
      EXPECT_TRUE(found) << row;
    }
  }
  EXPECT_EQ(row, 120);
  const at::Tensor numbers = random_tensor({40, 3}, at::kFloat, 5);
  expect_same_bits(nn::by_slot(nn::by_row(numbers, order), order), numbers, "there and back");
  for (const at::ScalarType type : kComputeTypes) {
    const at::Tensor x = random_tensor({40, 9}, type, 6);
    const at::Tensor rows = nn::rows_of_tokens(x, order);
    expect_same_bits(rows, x.index_select(0, order.tokens), "rows");
    expect_near(nn::sums_of_rows(rows, order), x.to(at::kDouble) * 3, tolerance_of(type), "sums");
  }
}

struct Size {
  std::int64_t experts, chosen, tokens = 23, hidden = 10, ffn = 14;
};

// A mixture with drawn weights.
class Drawn {
 public:
  Drawn(const Size& size, at::ScalarType type, RouteWeights weights) {
    parameters_.reserve(static_cast<std::size_t>(1 + 3 * size.experts));
    mixture.router = make({size.experts, size.hidden}, type);
    for (std::int64_t i = 0; i < size.experts; ++i) {
      mixture.experts.push_back({make({size.ffn, size.hidden}, type), make({size.ffn, size.hidden}, type),
                                 make({size.hidden, size.ffn}, type)});
    }
    mixture.chosen = size.chosen;
    mixture.weights = weights;
  }

  nn::Mixture mixture;
  std::vector<nn::Parameter>& parameters() { return parameters_; }

 private:
  nn::Parameter* make(std::vector<std::int64_t> sizes, at::ScalarType type) {
    nn::Parameter& parameter = parameters_.emplace_back();
    parameter.sizes = sizes;
    parameter.weight = random_tensor(sizes, at::kDouble, parameters_.size()).mul(0.4).to(type);
    parameter.gradient = at::zeros(sizes, type == at::kDouble ? at::kDouble : at::kFloat);
    return &parameter;
  }

  std::vector<nn::Parameter> parameters_;
};

struct Oracle {
  at::Tensor output, loss;
  std::vector<at::Tensor> gradients;  // of the input, then of every weight
};

// A plain loop over tokens and experts. The losses beside the output's are added to a sum whose gradient
// is 1.
Oracle oracle_of(Drawn& drawn, const at::Tensor& input, const at::Tensor& grad_output,
                 const nn::RouteLosses& losses) {
  std::vector<at::Tensor> leaves{leaf(input)};
  for (const nn::Parameter& parameter : drawn.parameters()) leaves.push_back(leaf(parameter.weight));
  const at::Tensor &x = leaves[0], scores = at::mm(x, leaves[1].t());
  std::vector<at::Tensor> outputs;
  for (std::int64_t token = 0; token < x.size(0); ++token) {
    const at::Tensor row = scores[token];
    const auto chosen = chosen_of(row, drawn.mixture.chosen);
    at::Tensor whole = at::logsumexp(row, 0);
    if (drawn.mixture.weights == RouteWeights::OfChosen)
      whole = at::logsumexp(row.index_select(0, at::tensor(chosen, at::kLong)), 0);
    at::Tensor sum = at::zeros({x.size(1)}, at::kDouble);
    for (const std::int64_t expert : chosen) {
      const at::Tensor *gate = &leaves[2 + 3 * expert], *up = gate + 1, *down = gate + 2;
      const at::Tensor product = at::silu(at::mv(*gate, x[token])) * at::mv(*up, x[token]);
      sum = sum + at::mv(*down, product) * at::exp(row[expert] - whole);
    }
    outputs.push_back(sum);
  }
  Oracle oracle{.output = at::stack(outputs), .loss = at::zeros({}, at::kDouble)};
  const at::Tensor all = at::logsumexp(scores, 1);
  if (!losses.balance.empty())
    oracle.loss = (at::softmax(scores, 1) * at::tensor(losses.balance, at::kDouble)).sum();
  oracle.loss = oracle.loss + losses.z * (all * all).sum();
  const at::Tensor total = (oracle.output * grad_output.to(at::kDouble)).sum() + oracle.loss;
  oracle.gradients = torch::autograd::grad({total}, leaves, {}, {}, false, true);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!oracle.gradients[i].defined()) oracle.gradients[i] = at::zeros_like(leaves[i]);  // no token
  }
  return oracle;
}

void expect_autograd(const Size& size, at::ScalarType type, RouteWeights weights, double tolerance,
                     const std::function<void(Drawn&)>& change = {}) {
  SCOPED_TRACE(::testing::Message() << size.experts << " experts, " << size.chosen << " of them, type "
                                    << at::toString(type));
  Drawn drawn(size, type, weights);
  if (change) change(drawn);
  const at::Tensor input = random_tensor({size.tokens, size.hidden}, type, 91);
  const at::Tensor grad_output = random_tensor({size.tokens, size.hidden}, type, 92);
  nn::RouteLosses losses{.z = 0.03};
  for (std::int64_t i = 0; i < size.experts; ++i) losses.balance.push_back(0.1 + 0.05 * i);
  const Oracle wanted = oracle_of(drawn, input, grad_output, losses);

  nn::MixtureRecord record;
  expect_near(nn::mixture_forward(drawn.mixture, input, record), wanted.output, tolerance, "output");
  std::vector<double> shares(static_cast<std::size_t>(size.experts));
  nn::add_shares(record.scores, record.routing, shares);
  const double balance = std::inner_product(shares.begin(), shares.end(), losses.balance.begin(), 0.0);
  EXPECT_NEAR(balance + losses.z * nn::sum_of_squares(record.routing), wanted.loss.item<double>(),
              tolerance * std::max(1.0, wanted.loss.item<double>()));
  for (const bool keeps : {true, false}) {
    nn::MixtureRecord kept = record;
    if (!keeps) kept = {};
    nn::MixtureWeightRecord pending;
    for (nn::Parameter& parameter : drawn.parameters()) parameter.gradient.zero_();
    expect_near(nn::mixture_backward_input(drawn.mixture, input, grad_output, losses, kept, pending),
                wanted.gradients[0], tolerance, "input's gradient");
    nn::mixture_backward_weight(drawn.mixture, pending);
    for (std::size_t i = 0; i < drawn.parameters().size(); ++i)
      expect_near(drawn.parameters()[i].gradient, wanted.gradients[i + 1], tolerance,
                  "gradient of weight " + std::to_string(i));
  }
}

TEST(Mixture, OutputAndGradientsEqualAutograd) {
  for (const RouteWeights weights : {RouteWeights::OfChosen, RouteWeights::OfAll}) {
    for (const auto& [experts, chosen] :
         {std::pair{2, 1}, {2, 2}, {3, 1}, {3, 2}, {3, 3}, {8, 1}, {8, 2}, {8, 8}})
      expect_autograd({experts, chosen}, at::kDouble, weights, kExact);
  }
  expect_autograd({8, 2}, at::kFloat, RouteWeights::OfChosen, 1e-5);
  expect_autograd({8, 2}, at::kBFloat16, RouteWeights::OfChosen, 3e-2);
}

// Of equal scores the lower index is taken, so the first k experts have all tokens and the others none.
TEST(Mixture, EqualsAutogradWhereSomeExpertsHaveAllTokensAndOthersNone) {
  for (const RouteWeights weights : {RouteWeights::OfChosen, RouteWeights::OfAll}) {
    for (const std::int64_t chosen : {1, 2}) {
      expect_autograd({4, chosen}, at::kDouble, weights, kExact,
                      [](Drawn& drawn) { drawn.mixture.router->weight.zero_(); });
    }
  }
}

struct Shared {
  at::Tensor output, grad_input;
  std::vector<at::Tensor> gradients;  // of every weight, added over the ranks
};

// Each of `ranks` threads has a part of the tokens and of the experts.
Shared over_ranks(int ranks, const Size& size, at::ScalarType type, bool tied_scores) {
  Shared shared{at::zeros({size.tokens, size.hidden}, at::kDouble),
                at::zeros({size.tokens, size.hidden}, at::kDouble),
                {}};
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    Drawn drawn(size, type, RouteWeights::OfChosen);
    if (tied_scores) drawn.mixture.router->weight.zero_();
    const nn::ExpertGroup group(world);
    const std::vector<nn::Expert> all = drawn.mixture.experts;
    const auto own = static_cast<std::ptrdiff_t>(size.experts / ranks), first = own * world.rank();
    drawn.mixture.experts = {all.begin() + first, all.begin() + first + own};
    drawn.mixture.group = &group;
    const mesh::Shard tokens = mesh::even_block(size.tokens, ranks, world.rank());
    const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, tokens.begin, tokens.count); };
    const at::Tensor input = part(random_tensor({size.tokens, size.hidden}, type, 91)).contiguous();
    const at::Tensor grad_output = part(random_tensor({size.tokens, size.hidden}, type, 92)).contiguous();
    nn::MixtureRecord record;
    const at::Tensor output = nn::mixture_forward(drawn.mixture, input, record);
    nn::MixtureWeightRecord pending;
    const at::Tensor grad_input = nn::mixture_backward_input(
        drawn.mixture, input, grad_output, {.balance = {}, .z = 0.03}, std::move(record), pending);
    nn::mixture_backward_weight(drawn.mixture, std::move(pending));
    const std::lock_guard lock(mutex);
    part(shared.output).copy_(output);
    part(shared.grad_input).copy_(grad_input);
    shared.gradients.resize(drawn.parameters().size());
    for (std::size_t i = 0; i < shared.gradients.size(); ++i) {
      at::Tensor& sum = shared.gradients[i];
      const at::Tensor& gradient = drawn.parameters()[i].gradient;
      sum = sum.defined() ? sum + gradient : gradient.clone();
    }
  });
  return shared;
}

TEST(Mixture, IsTheSameOverExpertRanksHoweverUnevenTheLoad) {
  for (const bool tied_scores : {false, true}) {
    for (const auto& [type, tolerance] : {std::pair{at::kDouble, kExact}, {at::kFloat, 1e-5}}) {
      for (const std::int64_t chosen : {1, 2, 8}) {
        const Size size{.experts = 8, .chosen = chosen, .tokens = 37};
        const Shared wanted = over_ranks(1, size, type, tied_scores);
        for (const int ranks : {2, 4, 8}) {
          SCOPED_TRACE(::testing::Message()
                       << ranks << " ranks, " << chosen << " of 8 experts, the first ones " << tied_scores);
          const Shared got = over_ranks(ranks, size, type, tied_scores);
          expect_near(got.output, wanted.output, tolerance, "output");
          expect_near(got.grad_input, wanted.grad_input, tolerance, "input's gradient");
          for (std::size_t i = 0; i < wanted.gradients.size(); ++i)
            expect_near(got.gradients[i], wanted.gradients[i], tolerance, "weight " + std::to_string(i));
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
