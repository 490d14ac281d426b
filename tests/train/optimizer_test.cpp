// SPDX-License-Identifier: Apache-2.0
#include "train/step/optimizer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "nn/kernels/square_sum.h"

namespace penstock::train {
namespace {

using nn::kernels::square_sum;

at::Tensor noise(std::vector<std::int64_t> shape, std::uint64_t key, at::ScalarType type = at::kFloat) {
  at::Tensor values = at::full(shape, 0.0, at::kDouble);
  auto* data = values.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = normal(key, static_cast<std::uint64_t>(i));
  return values.to(type);
}

nn::Parameter parameter(const std::string& name, std::vector<std::int64_t> shape,
                        at::ScalarType type = at::kFloat) {
  nn::Parameter made{.name = name, .weight = noise(shape, hash(name), type)};
  made.master = made.weight;
  made.gradient = noise(shape, hash(name + " gradient"), type);
  made.is_matrix = shape.size() == 2;
  made.sizes = shape;
  made.shard = mesh::padded_block(shape[0], 1, 0);
  return made;
}

const std::vector<std::string> kNames{"a", "b", "c", "d"};

// One parameter of the textbook's AdamW, element by element.
struct Textbook {
  double weight, first = 0, second = 0;
  void update(double gradient, std::int64_t step, double lr, double decay, const run::TrainOptions& options) {
    const double beta1 = options.betas[0], beta2 = options.betas[1];
    weight -= lr * decay * weight;
    first = beta1 * first + (1 - beta1) * gradient;
    second = beta2 * second + (1 - beta2) * gradient * gradient;
    const double mean = first / (1 - std::pow(beta1, step)), square = second / (1 - std::pow(beta2, step));
    weight -= lr * mean / (std::sqrt(square) + options.eps);
  }
};

TEST(LearningRate, RisesStraightFallsAsACosineAndEndsAtTheLeast) {
  run::TrainOptions options;
  options.steps = 110;
  EXPECT_DOUBLE_EQ(learning_rate(options, 1), 3e-5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10), 3e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 60), (3e-4 + 3e-5) / 2);
  EXPECT_DOUBLE_EQ(learning_rate(options, 110), 3e-5);
  for (std::int64_t step = 11; step <= 110; ++step) {
    EXPECT_LT(learning_rate(options, step), learning_rate(options, step - 1));
  }
}

TEST(LearningRate, StaysWhenConstantAndNeedsNoWarmUp) {
  run::TrainOptions options;
  options.lr_schedule = "constant";
  options.warmup_steps = 0;
  for (std::int64_t step = 1; step < 200; ++step) EXPECT_EQ(learning_rate(options, step), options.lr);
  options.lr_schedule = "cosine";
  options.warmup_steps = options.steps;
  EXPECT_EQ(learning_rate(options, options.steps), options.lr);
}

TEST(GradientNorm, IsCutToTheLimitAndNeverRaised) {
  EXPECT_DOUBLE_EQ(clip_scale(4.0, 1.0), 0.25);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_EQ(clip_scale(1e9, 0.0), 1.0) << "0 means off";
}

TEST(Optimizer, FollowsTheTextbookInF64) {
  run::TrainOptions options;
  nn::Parameter a = parameter("a", {3, 5}, at::kDouble);
  Textbook expected{a.master.const_data_ptr<double>()[7]};
  Optimizer optimizer({&a}, options);
  for (std::int64_t step = 1; step <= 20; ++step) {
    a.gradient.copy_(noise({3, 5}, static_cast<std::uint64_t>(step), at::kDouble));
    const double gradient = a.gradient.const_data_ptr<double>()[7];
    optimizer.update(1e-2, 0.5);
    expected.update(gradient * 0.5, step, 1e-2, options.weight_decay, options);
    EXPECT_NEAR(a.master.const_data_ptr<double>()[7], expected.weight, 1e-12);
  }
}

TEST(Optimizer, LetsOnlyMatricesDecayUnlessToldOtherwise) {
  for (const char* decay : {"matrices", "all"}) {
    run::TrainOptions options;
    options.decay = decay;
    nn::Parameter matrix = parameter("a", {2, 2}), norm = parameter("b", {2});
    matrix.gradient.zero_();
    norm.gradient.zero_();
    const at::Tensor before_matrix = matrix.master.clone(), before_norm = norm.master.clone();
    Optimizer({&matrix, &norm}, options).update(1e-2, 1.0);
    EXPECT_FALSE(at::equal(matrix.master, before_matrix));
    EXPECT_EQ(at::equal(norm.master, before_norm), options.decay == "matrices");
  }
}

TEST(Optimizer, GivesTheSameBitsHoweverParametersAreSpread) {
  const run::TrainOptions options;
  const std::vector<std::int64_t> shape{37, 53};
  std::vector<nn::Parameter> together, apart;
  for (const std::string& name : kNames) {
    together.push_back(parameter(name, shape));
    apart.push_back(parameter(name, shape));
  }
  Optimizer one({&together[0], &together[1], &together[2], &together[3]}, options);
  Optimizer left({&apart[1], &apart[0]}, options), right({&apart[2], &apart[3]}, options);
  for (int step = 0; step < 5; ++step) {
    ExactSum sum = right.square_sums();
    sum.add(left.square_sums());
    EXPECT_EQ(sum.value(), one.square_sums().value());
    one.update(1e-2, 0.7);
    left.update(1e-2, 0.7);
    right.update(1e-2, 0.7);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(together[i].master, apart[i].master));
  }
}

TEST(Optimizer, GivesTheSameBitsAtEveryAddress) {
  nn::Parameter plain = parameter("a", {1003});
  Optimizer reference({&plain}, {});
  const at::Tensor start = plain.master.clone();
  reference.update(1e-2, 1.0);
  for (std::int64_t offset = 1; offset < 16; ++offset) {
    nn::Parameter moved = parameter("a", {1003});
    const at::Tensor room = at::full({1100}, 0.0, at::kFloat);
    moved.master = room.narrow(0, offset, 1003).copy_(start);
    Optimizer({&moved}, {}).update(1e-2, 1.0);
    EXPECT_TRUE(at::equal(moved.master, plain.master)) << offset;
    EXPECT_EQ(square_sum(moved.master).value(), square_sum(plain.master).value());
  }
}

TEST(Optimizer, CountsTiedEmbeddingsOnceAndKeepsTheirCopiesEqual) {
  nn::Parameter owner = parameter("a", {4, 3}), copy = parameter("a", {4, 3}), alias = owner;
  copy.shard.copy = alias.shard.copy = 1;
  Optimizer with_alias({&owner, &alias}, {}), with_copy({&copy}, {});
  EXPECT_EQ(with_alias.entries().size(), 1u);
  EXPECT_EQ(with_alias.square_sums().value(), square_sum(owner.gradient).value());
  EXPECT_EQ(with_copy.square_sums().value(), 0.0);
  for (int step = 0; step < 3; ++step) {
    with_alias.update(1e-2, 1.0);
    with_copy.update(1e-2, 1.0);
    EXPECT_TRUE(at::equal(owner.master, copy.master));
  }
}

TEST(Optimizer, UpdatesMastersAndLeavesNarrowWeightsToTheStage) {
  nn::Parameter narrow = parameter("a", {8, 8});
  narrow.weight = narrow.master.to(at::kBFloat16);
  const at::Tensor weight = narrow.weight.clone(), master = narrow.master.clone();
  Optimizer({&narrow}, {}).update(1e-2, 1.0);
  EXPECT_TRUE(at::equal(narrow.weight, weight));
  EXPECT_FALSE(at::equal(narrow.master, master));
}

TEST(Optimizer, GoesOnFromItsMomentsAndCountAsIfNeverStopped) {
  nn::Parameter whole = parameter("a", {5, 5}), halves = parameter("a", {5, 5});
  Optimizer steady({&whole}, {}), first({&halves}, {});
  for (int step = 0; step < 3; ++step) {
    steady.update(1e-2, 1.0);
    first.update(1e-2, 1.0);
  }
  Optimizer second({&halves}, {});
  second.entries()[0].first_moment.copy_(first.entries()[0].first_moment);
  second.entries()[0].second_moment.copy_(first.entries()[0].second_moment);
  second.set_updates(first.updates());
  for (int step = 0; step < 3; ++step) {
    steady.update(1e-2, 1.0);
    second.update(1e-2, 1.0);
  }
  EXPECT_TRUE(at::equal(whole.master, halves.master));
}

// What one of several replicas holds of `whole`.
nn::Parameter share_of(const nn::Parameter& whole, const mesh::StateSharding& sharding) {
  nn::Parameter part = whole;
  part.sharding = sharding;
  part.master = part.own_part(whole.master).clone();
  return part;
}

TEST(Optimizer, OfSharesUpdatesTheElementsOfTheWholeToTheBit) {
  const nn::Parameter given = parameter("a", {37, 53});
  nn::Parameter whole = given;
  whole.master = given.master.clone();
  whole.gradient = given.gradient.clone();
  Optimizer one({&whole}, {});
  std::vector<nn::Parameter> parts;
  for (int shard = 0; shard < 4; ++shard) parts.push_back(share_of(given, {.shards = 4, .shard = shard}));
  ExactSum sum;
  one.update(1e-2, 0.7);
  for (nn::Parameter& part : parts) {
    Optimizer own({&part}, {});
    EXPECT_LE(own.entries()[0].first_moment.numel(), 37 * 53 / 4 + mesh::kShareUnit);
    sum.add(own.square_sums());
    part.gradient = part.gradient.clone();
    own.update(1e-2, 0.7);
    EXPECT_TRUE(at::equal(part.master, part.own_part(whole.master)));
  }
  EXPECT_EQ(sum.value(), square_sum(parameter("a", {37, 53}).gradient).value());
}

}  // namespace
}  // namespace penstock::train
