// SPDX-License-Identifier: Apache-2.0
// Products, sums, embedding and loss against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/f32_products.h"
#include "nn/kernels/cpu/tiled_products.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/matmul.h"
#include "nn/reference_model.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;
using kernels::Bf16Products;

// a [m, k] · b [k, n] by three loops in f64.
at::Tensor loops(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble).contiguous(), y = b.to(at::kDouble).contiguous();
  const std::int64_t m = x.size(0), k = x.size(1), n = y.size(1);
  at::Tensor result = at::zeros({m, n}, at::kDouble);
  const double* p = x.const_data_ptr<double>();
  const double* q = y.const_data_ptr<double>();
  double* r = result.data_ptr<double>();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) r[i * n + j] += p[i * k + l] * q[l * n + j];
    }
  }
  return result;
}

struct LinearSizes {
  std::int64_t tokens, in, out;
};
constexpr LinearSizes kLinears[] = {{1, 1, 1}, {3, 5, 7}, {128, 33, 65}, {2, 96, 259}, {65, 128, 64}};

TEST(Products, EqualPlainLoops) {
  for (const at::ScalarType type : kComputeTypes) {
    for (const auto& [tokens, in, out] : kLinears) {
      const at::Tensor x = random_tensor({tokens, in}, type, 1), weight = random_tensor({out, in}, type, 2);
      const at::Tensor grad = random_tensor({tokens, out}, type, 3);
      const double tolerance = tolerance_of(type);
      expect_near(kernels::product(x, weight), loops(x, weight.t()), tolerance, "forward");
      const at::Tensor wanted = loops(grad, weight);
      expect_near(kernels::product_backward(grad, weight), wanted, tolerance, "backward");
      at::Tensor sum = random_tensor({tokens, in}, type, 4);
      const at::Tensor total = wanted + sum.to(at::kDouble);
      kernels::add_product_backward(sum, grad, weight);
      expect_near(sum, total, tolerance, "added backward");
    }
  }
}

// On every processor that has them, also where products() takes MKL's.
TEST(Products, ByTilesEqualPlainLoopsInEveryLayoutAndOnAnyThreads) {
  if (!kernels::has_tile_products(at::kFloat)) GTEST_SKIP() << "needs a processor with tile products";
  for (const auto& [rows, inner, columns] :
       {LinearSizes{1, 1, 1}, {3, 300, 7}, {70, 257, 300}, {600, 33, 530}, {2, 0, 3}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        at::Tensor a = random_tensor({rows, inner}, at::kFloat, 1),
                   b = random_tensor({inner, columns}, at::kFloat, 2);
        if (a_transposed) a = a.t().contiguous().t();
        if (b_transposed) b = b.t().contiguous().t();
        const at::Tensor wanted = loops(a, b), before = random_tensor({rows, columns}, at::kFloat, 3);
        at::Tensor results[2];
        for (const int threads : {1, 3}) {
          at::set_num_threads(threads);
          at::Tensor result = before.clone();
          kernels::multiply_by_tiles(result, a, b, /*adds=*/false);
          expect_near(result, wanted, tolerance_of(at::kFloat), "product");
          kernels::multiply_by_tiles(result, a, b, /*adds=*/true);
          expect_near(result, 2 * wanted, tolerance_of(at::kFloat), "added product");
          results[threads / 2] = result;
        }
        at::set_num_threads(1);
        EXPECT_TRUE(results[0].equal(results[1]));
        if (!kernels::f32_is_faster_by_tiles()) continue;  // runs depend on what follows where they use tiles
        at::Tensor of_one_row = at::empty({1, columns}, at::kFloat);
        kernels::multiply_by_tiles(of_one_row, a.narrow(0, rows - 1, 1), b, /*adds=*/false);
        at::Tensor of_all = at::empty({rows, columns}, at::kFloat);
        kernels::multiply_by_tiles(of_all, a, b, /*adds=*/false);
        EXPECT_TRUE(of_one_row[0].equal(of_all[rows - 1])) << "a row's bits depend on the other rows";
      }
    }
  }
}

TEST(Products, WeightGradientsAreAddedInTheAccumulatorTypeOnEveryPath) {
  for (const at::ScalarType type : kComputeTypes) {
    for (const Bf16Products path :
         {Bf16Products::Summed, Bf16Products::Tiled, Bf16Products::Native, Bf16Products::Widened}) {
      if (path == Bf16Products::Tiled && !kernels::has_tile_products(at::kBFloat16)) continue;
      for (const auto& [tokens, in, out] : kLinears) {
        const at::Tensor x = random_tensor({tokens, in}, type, 1),
                         grad = random_tensor({tokens, out}, type, 2);
        at::Tensor sum = random_tensor({out, in}, kernels::accumulator_type(type), 3);
        const at::Tensor wanted = loops(grad.t(), x) + sum.to(at::kDouble);
        kernels::accumulate_weight_gradient(sum, grad, x, path);
        // Only the native path rounds its product to bf16 before the sum.
        const bool rounds = type == at::kBFloat16 && path == Bf16Products::Native;
        expect_near(sum, wanted, rounds ? 5e-3 : std::min(tolerance_of(type), 1e-5), "weight gradient");
      }
    }
  }
}

TEST(Accumulate, AddsPartsOfAnyStridesToTheWiderSum) {
  for (const at::ScalarType type : kComputeTypes) {
    const at::Tensor part = random_tensor({2, 5, 3, 8}, type, 1).transpose(1, 2);
    at::Tensor sum = random_tensor({2, 3, 5, 8}, kernels::accumulator_type(type), 2);
    const at::Tensor wanted = sum.to(at::kDouble) + part.to(at::kDouble);
    kernels::accumulate(sum, part);
    expect_near(sum, wanted, 1e-6, "sum");
    at::Tensor fresh;
    kernels::accumulate_or_take(fresh, part);
    expect_same_bits(fresh, part.to(kernels::accumulator_type(type)), "first part");
  }
}

TEST(Embedding, GathersRowsAndAddsThemBack) {
  for (const at::ScalarType type : kComputeTypes) {
    const at::Tensor table = random_tensor({11, 6}, type, 1), tokens = random_ids(40, 11, 2);
    const at::Tensor grad = random_tensor({40, 6}, type, 3);
    expect_same_bits(kernels::embed(table, tokens), table.index_select(0, tokens), "rows");
    at::Tensor sum = random_tensor({11, 6}, kernels::accumulator_type(type), 4);
    const at::Tensor wanted = sum.to(at::kDouble).index_add(0, tokens, grad.to(at::kDouble));
    kernels::accumulate_held_embedding_gradient(sum, mesh::padded_block(11, 1, 0), grad, tokens);
    expect_near(sum, wanted, 1e-5, "gradient");
  }
}

TEST(Embedding, RefusesTokensOutsideTheVocabulary) {
  const at::Tensor table = random_tensor({3, 2}, at::kFloat, 1);
  for (const std::int64_t token : {-1, 3}) {
    EXPECT_THROW(kernels::embed(table, at::empty({1}, at::kLong).fill_(token)), std::logic_error);
  }
}

TEST(CrossEntropy, LossAndGradientEqualAutograd) {
  for (const at::ScalarType type : kComputeTypes) {
    for (const auto& [rows, vocabulary] : {std::pair{1, 1}, {7, 3}, {40, 259}}) {
      at::Tensor logits = random_tensor({rows, vocabulary}, type, 1).mul(5);
      const at::Tensor targets = random_ids(rows, vocabulary + 1, 2) - 1;
      const at::Tensor exact = leaf(logits);
      const at::Tensor wanted = reference::loss_sum(exact, targets);
      const at::Tensor gradient = torch::autograd::grad({wanted * 0.5}, {exact})[0];
      const double loss = kernels::cross_entropy(logits, targets).value();
      EXPECT_NEAR(loss, wanted.item<double>(), (type == at::kDouble ? 1e-10 : 1e-5) * std::max(1.0, loss));
      EXPECT_EQ(kernels::cross_entropy_with_gradient(logits, targets, 0.5).value(), loss);
      expect_near(logits, gradient, tolerance_of(type), "gradient");
    }
  }
}

TEST(CrossEntropy, HugeLogitsStayFiniteAndBrokenOnesShow) {
  at::Tensor logits = random_tensor({4, 9}, at::kFloat, 1).mul(1e4);
  const at::Tensor targets = random_ids(4, 9, 2);
  EXPECT_TRUE(std::isfinite(kernels::cross_entropy(logits, targets).value()));
  logits[2][3] = NAN;
  EXPECT_FALSE(std::isfinite(kernels::cross_entropy(logits, targets).value()));
}

}  // namespace
}  // namespace penstock::testing
