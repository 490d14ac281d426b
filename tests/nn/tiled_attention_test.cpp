// SPDX-License-Identifier: Apache-2.0
// Our own attention by each of the products that the processor has (cpu/attention/products_choice.h).
#include "nn/kernels/cpu/attention/tiled.h"

#include <ATen/ops/ones_like.h>

#include <cmath>

#include "nn/attention_sequences.h"
#include "nn/kernels/cpu/attention/tiles.h"
#include "nn/kernels/cpu/tiled_products.h"

namespace penstock::testing {
namespace {

using kernels::AttentionProducts;

Attend attend_by(AttentionProducts products) {
  Attend attend;
  attend.forward = [products](auto&&... of) { return kernels::attend_tiled(of..., products); };
  attend.backward = [products](auto&&... of) { return kernels::attend_tiled_backward(of..., products); };
  return attend;
}

// By each of the products that the processor has for a type; by the kernel's own choice for one that it
// widens first.
std::vector<Attend> ways_to_attend(at::ScalarType type, std::int64_t width) {
  if (kernels::multiplied_type(type) != type) return {AttentionKernel::Tiled};
  std::vector<Attend> ways;
  for (const AttentionProducts products : kernels::possible_products(type, width))
    ways.push_back(attend_by(products));
  return ways;
}

class TiledAttention : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (kernels::fastest_attention(GetParam()) != AttentionKernel::Tiled) {
      GTEST_SKIP() << "this processor has no tile products for " << GetParam()
                   << "; no command enables it, another processor does";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Types, TiledAttention, ::testing::Values(at::kFloat, at::kBFloat16));

// Among the sizes are parts of tiles, whole ones and several of both queries and keys.
TEST_P(TiledAttention, IsAsGoodAsItsRounding) {
  std::vector<Sizes> sizes = all_sizes();
  for (const auto& slices :
       std::vector<std::vector<std::int64_t>>{{64}, {65}, {256}, {257}, {600}, {63, 320, 1}, {300, 129}}) {
    sizes.push_back({2, 1, slices});
    sizes.push_back({3, 3, slices});
  }
  const double tolerance = GetParam() == at::kFloat ? 1e-5 : 2e-2;
  for (const std::uint64_t longest_document : {0, 1, 3, 50, 500}) {
    for (const Sizes& size : sizes)
      expect_equals_autograd(size, GetParam(), AttentionKernel::Tiled, tolerance, longest_document);
  }
}

// Heads of whole panels, which own products take, and the products that are left to other processors. Each
// cut into slices with one length of documents, which changes from width to width and from product to
// product.
TEST_P(TiledAttention, OfWideHeadsIsAsGoodAsItsRounding) {
  const double tolerance = GetParam() == at::kFloat ? 1e-5 : 2e-2;
  constexpr std::uint64_t kLongestDocuments[] = {0, 1, 50, 500};
  std::size_t turn = 0;
  for (const std::int64_t width : {32, 64, 96, 128, 256}) {
    for (const Attend& attend : ways_to_attend(GetParam(), width)) {
      for (const auto& slices :
           std::vector<std::vector<std::int64_t>>{{1}, {2, 7, 1, 4}, {63, 320, 1}, {300, 129}, {600}}) {
        expect_equals_autograd({2, 1, slices, width}, GetParam(), attend, tolerance,
                               kLongestDocuments[turn++ % std::size(kLongestDocuments)]);
      }
    }
  }
}

// Two slices.
void expect_same_bits_for_threads(const Sequences& all) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const AttentionPart alone = forward(all, 1);
  const Gradients wanted = backward(all);
  for (const int threads : {2, 3, 5}) {
    at::set_num_threads(threads);
    expect_same_bits(forward(all, 1).output, alone.output, "output");
    const Gradients got = backward(all);
    for (std::size_t i = 0; i < 2; ++i) {
      expect_same_bits(got.query[i], wanted.query[i], "query");
      expect_same_bits(got.key[i], wanted.key[i], "key");
      expect_same_bits(got.value[i], wanted.value[i], "value");
    }
  }
  at::set_num_threads(before);
}

TEST_P(TiledAttention, HasTheSameBitsForEveryNumberOfThreads) {
  for (const std::int64_t width : {6, 64}) {
    Sequences all({6, 2, {150, 90}, width}, GetParam(), AttentionKernel::Tiled);
    for (const Attend& attend : ways_to_attend(GetParam(), width)) {
      all.attend = attend;
      expect_same_bits_for_threads(all);
    }
  }
}

TEST(TiledProducts, OfHeadsThatAreNoWholePanelsAreBrgemms) {
  for (const std::int64_t width : {6, 16, 48, 80}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      EXPECT_EQ(kernels::possible_products(type, width), std::vector{AttentionProducts::Brgemm});
    }
  }
}

// All but brgemm, on heads of 64.
class OwnProducts : public TiledAttention {
 protected:
  static std::vector<AttentionProducts> own() {
    std::vector<AttentionProducts> products = kernels::possible_products(GetParam(), 64);
    products.pop_back();
    return products;
  }
  void SetUp() override {
    TiledAttention::SetUp();
    if (!IsSkipped() && own().empty()) {
      GTEST_SKIP() << "this processor has only brgemm for " << GetParam()
                   << "; no command enables it, another processor does";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Types, OwnProducts, ::testing::Values(at::kFloat, at::kBFloat16));

TEST_P(OwnProducts, MakeAQuerysBitsDependOnItsKeysAlone) {
  const Sequences all({2, 1, {700}, 64}, GetParam(), AttentionKernel::Tiled);
  for (const AttentionProducts products : own()) {
    const auto attend = [&](std::int64_t first, std::int64_t count, std::int64_t keys, Mask mask) {
      return kernels::attend_tiled(all.query.narrow(2, first, count).contiguous(),
                                   all.key.narrow(2, 0, keys).contiguous(),
                                   all.value.narrow(2, 0, keys).contiguous(), mask, products);
    };
    const AttentionPart whole = attend(0, 700, 700, Mask::None), causal = attend(0, 700, 700, Mask::Causal);
    const auto expect_rows = [&](const AttentionPart& part, const AttentionPart& of, std::int64_t first,
                                 std::int64_t count) {
      expect_same_bits(part.output, of.output.narrow(2, first, count), "output");
      expect_same_bits(part.log_sum_exp, of.log_sum_exp.narrow(2, first, count), "log-sum-exp");
    };
    for (const std::int64_t first : {0, 1, 37, 80, 300})
      expect_rows(attend(first, 20, 700, Mask::None), whole, first, 20);
    for (const std::int64_t count : {1, 31, 33, 100, 257, 600})
      expect_rows(attend(0, count, count, Mask::Causal), causal, 0, count);
  }
}

// Heads that share keys are as heads with copies of these keys.
TEST_P(OwnProducts, TreatGroupedQueriesAsSingleHeads) {
  const Sequences all({4, 2, {150}, 64}, GetParam(), AttentionKernel::Tiled);
  const at::Tensor keys = all.key.repeat_interleave(2, 1), values = all.value.repeat_interleave(2, 1);
  for (const AttentionProducts products : own()) {
    const AttentionPart grouped =
        kernels::attend_tiled(all.query, all.key, all.value, Mask::Causal, products);
    const AttentionPart single = kernels::attend_tiled(all.query, keys, values, Mask::Causal, products);
    expect_same_bits(grouped.output, single.output, "output");
    if (products == AttentionProducts::Avx2)
      continue;  // its backward is Brgemm's, which adds in another order
    const auto backward = [&](const at::Tensor& key, const at::Tensor& value) {
      return kernels::attend_tiled_backward(all.grad_output, all.query, key, value,
                                            {grouped.output.to(GetParam()), grouped.log_sum_exp},
                                            Mask::Causal, products);
    };
    const auto got = backward(all.key, all.value), wanted = backward(keys, values);
    const auto summed = [](const at::Tensor& x) { return x.unflatten(1, {2, 2}).sum(2); };
    expect_same_bits(got.query, wanted.query, "query");
    expect_same_bits(got.key, summed(wanted.key), "key");
    expect_same_bits(got.value, summed(wanted.value), "value");
  }
}

// Keys are read by token, as the layers of a model write them.
TEST_P(OwnProducts, ReadKeysOfEveryLayout) {
  const Sequences all({4, 2, {150}, 64}, GetParam(), AttentionKernel::Tiled);
  const auto by_token = [](const at::Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); };
  for (const AttentionProducts products : own()) {
    const auto attend = [&](const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
      return kernels::attend_tiled(query, key, value, Mask::Causal, products).output;
    };
    expect_same_bits(attend(by_token(all.query), by_token(all.key), by_token(all.value)),
                     attend(all.query, all.key, all.value), "output");
  }
}

// Scores that grow from key to key raise the maximum of the running softmax again and again.
TEST_P(OwnProducts, FollowScoresThatGrow) {
  Sequences all({1, 1, {600}, 64}, GetParam(), AttentionKernel::Tiled);
  const at::Tensor growing = at::arange(600, at::kDouble).mul(0.05).view({1, 1, 600, 1});
  all.query = at::ones_like(all.query).mul(0.5);
  all.key = all.key.mul(0.1).add(growing).to(GetParam());
  for (const AttentionProducts products : own()) {
    all.attend = attend_by(products);
    const at::Tensor wanted = reference::attention(all.query.to(at::kDouble), all.key.to(at::kDouble),
                                                   all.value.to(at::kDouble), {});
    expect_near(forward(all, 0).output, wanted, GetParam() == at::kFloat ? 1e-5 : 2e-2, "output");
  }
}

TEST_P(TiledAttention, CarriesAScoreThatIsNoNumberIntoTheOutput) {
  for (const std::int64_t width : {6, 32}) {
    Sequences all({1, 1, {5}, width}, GetParam(), AttentionKernel::Tiled);
    all.query.select(2, 3).fill_(NAN);
    for (const Attend& attend : ways_to_attend(GetParam(), width)) {
      all.attend = attend;
      const at::Tensor output = forward(all, 0).output;
      EXPECT_TRUE(output.select(2, 3).isnan().all().item<bool>());
      EXPECT_FALSE(output.narrow(2, 0, 3).isnan().any().item<bool>());
    }
  }
}

// The power of a score that far above the query's greatest is infinite, or no number.
TEST_P(TiledAttention, HasNoTraceOfAKeyThatIsNotSeenHoweverGreatItsScore) {
  for (const std::int64_t width : {6, 64}) {
    Sequences all({1, 1, {2}, width}, GetParam(), AttentionKernel::Tiled);
    all.query.zero_().select(3, 0).fill_(std::sqrt(static_cast<double>(width)));
    all.key.zero_();
    for (double score = 86; score < 92; score += 0.125) {
      all.key.select(2, 1).select(2, 0).fill_(score);
      for (const Attend& attend : ways_to_attend(GetParam(), width)) {
        AttentionPart part = attend.forward(all.query, all.key, all.value, all.visible(0, 0));
        part.output = part.output.to(GetParam());
        const auto back =
            attend.backward(all.grad_output, all.query, all.key, all.value, part, all.visible(0, 0));
        for (const at::Tensor& gradient : {back.query, back.key, back.value})
          EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << "a score of " << score;
      }
    }
  }
}

// Documents over several tiles: what no query of a tile sees is not a number, and no result of that tile
// tells.
class SkippedTiles {
 public:
  SkippedTiles(at::ScalarType type, std::int64_t width)
      : sequences({2, 1, {kTokens}, width}, type, AttentionKernel::Tiled) {
    sequences.draw_documents(400);
    sequences.documents = sequences.documents.narrow(0, 0, 1);
    for (at::Tensor* x : {&sequences.query, &sequences.key, &sequences.value, &sequences.grad_output})
      *x = x->narrow(0, 0, 1).contiguous();
  }

  void expect_no_trace_of_unseen_tiles() const {
    const AttentionPart whole = attend(sequences.key, sequences.value);
    const auto wanted = gradients(whole, sequences.query, sequences.key, sequences.value);
    int skipped = 0;
    for (std::int64_t keys = 0; keys < kKeyTiles; ++keys) {
      const at::Tensor key = spoilt(sequences.key, keys, kernels::kKeys),
                       value = spoilt(sequences.value, keys, kernels::kKeys);
      const AttentionPart part = attend(key, value);
      const auto back = gradients(whole, sequences.query, key, value);
      for (std::int64_t queries = 0; queries < kQueryTiles; ++queries) {
        if (sees(queries, keys)) continue;
        ++skipped;
        const auto tile = [&](const at::Tensor& x) { return tile_of(x, queries, kernels::kQueries); };
        expect_same_bits(tile(part.output), tile(whole.output), "output");
        expect_same_bits(tile(back.query), tile(wanted.query), "gradient of the queries");
      }
    }
    for (std::int64_t queries = 0; queries < kQueryTiles; ++queries) {
      const auto back = gradients(whole, spoilt(sequences.query, queries, kernels::kQueries), sequences.key,
                                  sequences.value);
      for (std::int64_t keys = 0; keys < kKeyTiles; ++keys) {
        if (sees(queries, keys)) continue;
        const auto tile = [&](const at::Tensor& x) { return tile_of(x, keys, kernels::kKeys); };
        expect_same_bits(tile(back.key), tile(wanted.key), "gradient of the keys");
        expect_same_bits(tile(back.value), tile(wanted.value), "gradient of the values");
      }
    }
    EXPECT_GT(skipped, kQueryTiles * kKeyTiles / 2);
  }

  Sequences sequences;

 private:
  static constexpr std::int64_t kTokens = 1500;
  static constexpr std::int64_t kQueryTiles = (kTokens + kernels::kQueries - 1) / kernels::kQueries;
  static constexpr std::int64_t kKeyTiles = (kTokens + kernels::kKeys - 1) / kernels::kKeys;

  AttentionPart attend(const at::Tensor& keys, const at::Tensor& values) const {
    AttentionPart part = sequences.attend.forward(sequences.query, keys, values, sequences.visible(0, 0));
    part.output = part.output.to(keys.scalar_type());
    return part;
  }
  kernels::AttentionGradients gradients(const AttentionPart& whole, const at::Tensor& queries,
                                        const at::Tensor& keys, const at::Tensor& values) const {
    return sequences.attend.backward(sequences.grad_output, queries, keys, values, whole,
                                     sequences.visible(0, 0));
  }
  // Whether some query of a tile sees some key of a tile.
  bool sees(std::int64_t queries, std::int64_t keys) const {
    const std::int64_t last_query = std::min((queries + 1) * kernels::kQueries, kTokens) - 1;
    const std::int64_t last_key = std::min((keys + 1) * kernels::kKeys, kTokens) - 1;
    return sequences.documents[0][queries * kernels::kQueries].item<std::int64_t>() <= last_key &&
           keys * kernels::kKeys <= last_query;
  }
  static at::Tensor tile_of(const at::Tensor& x, std::int64_t tile, std::int64_t size) {
    return x.narrow(2, tile * size, std::min(size, kTokens - tile * size));
  }
  // A copy without numbers in a tile.
  static at::Tensor spoilt(const at::Tensor& x, std::int64_t tile, std::int64_t size) {
    at::Tensor copy = x.clone();
    tile_of(copy, tile, size).fill_(std::numeric_limits<double>::quiet_NaN());
    return copy;
  }
};

TEST_P(TiledAttention, SkipsAllTilesThatNoQuerySees) {
  for (const std::int64_t width : {6, 64}) {
    SkippedTiles tiles(GetParam(), width);
    for (const Attend& attend : ways_to_attend(GetParam(), width)) {
      tiles.sequences.attend = attend;
      tiles.expect_no_trace_of_unseen_tiles();
    }
  }
}

}  // namespace
}  // namespace penstock::testing
