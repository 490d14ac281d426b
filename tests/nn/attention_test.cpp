// SPDX-License-Identifier: Apache-2.0
// Attention over chunks of keys, merged, against plain softmax attention over the whole sequence and its
// autograd.
#include "nn/kernels/attention.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cpu/attention/bf16_choice.h"
#include "nn/kernels/cpu/attention/tiles.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/merge.h"
#include "nn/reference_model.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;
using kernels::AttentionKernel;
using kernels::AttentionPart;
using kernels::Mask;

struct Sizes {
  std::int64_t heads, kv_heads;
  std::vector<std::int64_t> slices;
  std::int64_t width = 6;  // of a head
};

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> result;
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}, {4, 1}}) {
    for (const auto& slices : std::vector<std::vector<std::int64_t>>{
             {1}, {2}, {7}, {128}, {1, 1}, {3, 3, 1}, {2, 7, 1, 4}, {100, 28}}) {
      result.push_back({heads, kv_heads, slices});
    }
  }
  return result;
}

// Whole sequences [2, heads, s, width] and the slices of them.
struct Sequences {
  at::Tensor query, key, value, grad_output;
  std::vector<std::int64_t> begins, lengths;
  AttentionKernel kernel;
  at::Tensor documents;  // [2, s]: of each token where its document begins; or undefined

  Sequences(const Sizes& sizes, at::ScalarType type, AttentionKernel kernel)
      : lengths(sizes.slices), kernel(kernel) {
    std::int64_t tokens = 0;
    for (const std::int64_t length : lengths) {
      begins.push_back(tokens);
      tokens += length;
    }
    query = random_tensor({2, sizes.heads, tokens, sizes.width}, type, 1);
    key = random_tensor({2, sizes.kv_heads, tokens, sizes.width}, type, 2);
    value = random_tensor({2, sizes.kv_heads, tokens, sizes.width}, type, 3);
    grad_output = random_tensor({2, sizes.heads, tokens, sizes.width}, type, 4);
  }
  // Cuts each sequence into documents of random lengths.
  void draw_documents(std::uint64_t longest) {
    const std::int64_t tokens = query.size(2);
    documents = at::empty({2, tokens}, at::kLong);
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      for (std::int64_t begin = 0, end = 0; begin < tokens; begin = end) {
        const auto drawn = static_cast<std::uint64_t>(sequence * tokens + begin);
        end = std::min(tokens, begin + 1 + static_cast<std::int64_t>(random_bits(longest, drawn) % longest));
        documents[sequence].narrow(0, begin, end - begin).fill_(begin);
      }
    }
  }
  // Of slice i's queries to slice j's keys.
  kernels::Visible visible(std::size_t i, std::size_t j) const {
    const Mask mask = j == i ? Mask::Causal : Mask::None;
    if (!documents.defined()) return mask;
    return {mask, documents.narrow(1, begins[i], lengths[i]), begins[j]};
  }
  at::Tensor slice(const at::Tensor& x, std::size_t i) const {
    return x.narrow(2, begins[i], lengths[i]).contiguous();
  }
};

AttentionPart forward(const Sequences& all, std::size_t i) {
  const at::Tensor query = all.slice(all.query, i);
  AttentionPart total =
      kernels::attend(query, all.slice(all.key, i), all.slice(all.value, i), all.visible(i, i), all.kernel);
  total.output = total.output.to(kernels::accumulator_type(query.scalar_type()));
  for (std::size_t j = i; j-- > 0;) {
    kernels::merge(total, kernels::attend(query, all.slice(all.key, j), all.slice(all.value, j),
                                          all.visible(i, j), all.kernel));
  }
  total.output = total.output.to(query.scalar_type());
  return total;
}

struct Gradients {
  std::vector<at::Tensor> query, key, value;
};

Gradients backward(const Sequences& all) {
  const std::size_t n = all.lengths.size();
  Gradients sums{std::vector<at::Tensor>(n), std::vector<at::Tensor>(n), std::vector<at::Tensor>(n)};
  for (std::size_t i = n; i-- > 0;) {
    const AttentionPart merged = forward(all, i);
    for (std::size_t j = i + 1; j-- > 0;) {
      const auto part = kernels::attend_backward(all.slice(all.grad_output, i), all.slice(all.query, i),
                                                 all.slice(all.key, j), all.slice(all.value, j), merged,
                                                 all.visible(i, j), all.kernel);
      kernels::accumulate_or_take(sums.query[i], part.query);
      kernels::accumulate_or_take(sums.key[j], part.key);
      kernels::accumulate_or_take(sums.value[j], part.value);
    }
  }
  return sums;
}

// longest_document 0: every sequence is one document.
void expect_equals_autograd(const Sizes& sizes, at::ScalarType type, AttentionKernel kernel, double tolerance,
                            std::uint64_t longest_document = 0) {
  Sequences all(sizes, type, kernel);
  if (longest_document > 0) all.draw_documents(longest_document);
  const at::Tensor query = leaf(all.query), key = leaf(all.key), value = leaf(all.value);
  const at::Tensor wanted = reference::attention(query, key, value, all.documents);
  const auto exact = torch::autograd::grad({wanted}, {query, key, value}, {all.grad_output.to(at::kDouble)});
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < all.lengths.size(); ++i) outputs.push_back(forward(all, i).output);
  const Gradients got = backward(all);
  expect_near(at::cat(outputs, 2), wanted, tolerance, "output");
  expect_near(at::cat(got.query, 2), exact[0], tolerance, "query");
  expect_near(at::cat(got.key, 2), exact[1], tolerance, "key");
  expect_near(at::cat(got.value, 2), exact[2], tolerance, "value");
}

TEST(Attention, OverChunksEqualsPlainAttentionAndItsAutograd) {
  for (const Sizes& sizes : all_sizes())
    expect_equals_autograd(sizes, at::kDouble, AttentionKernel::Aten, 1e-12);
}

TEST(Attention, InsideDocumentsEqualsPlainAttentionAndItsAutograd) {
  for (const Sizes& sizes : all_sizes()) {
    for (const std::uint64_t longest : {1, 3, 50}) {
      expect_equals_autograd(sizes, at::kDouble, AttentionKernel::Aten, 1e-12, longest);
      expect_equals_autograd(sizes, at::kFloat, AttentionKernel::Aten, 1e-5, longest);
    }
  }
}

TEST(Attention, InNarrowTypesIsAsGoodAsTheirRounding) {
  for (const Sizes& sizes : all_sizes()) {
    expect_equals_autograd(sizes, at::kFloat, AttentionKernel::Aten, 1e-5);
    expect_equals_autograd(sizes, at::kBFloat16, AttentionKernel::Aten, 2e-2);
  }
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

// Heads of whole vector registers, which some processors' own loops take (cpu/attention/bf16_choice.h).
TEST_P(TiledAttention, OfWideHeadsIsAsGoodAsItsRounding) {
  const double tolerance = GetParam() == at::kFloat ? 1e-5 : 2e-2;
  for (const std::int64_t width : {32, 64, 96, 128, 256}) {
    for (const std::uint64_t longest_document : {0, 1, 50, 500}) {
      for (const auto& slices :
           std::vector<std::vector<std::int64_t>>{{1}, {2, 7, 1, 4}, {63, 320, 1}, {300, 129}, {600}}) {
        expect_equals_autograd({2, 1, slices, width}, GetParam(), AttentionKernel::Tiled, tolerance,
                               longest_document);
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
  for (const std::int64_t width : {6, 64})
    expect_same_bits_for_threads(Sequences({6, 2, {150, 90}, width}, GetParam(), AttentionKernel::Tiled));
}

TEST(OwnProducts, MakeAQuerysBitsDependOnItsKeysAlone) {
  const Sequences all({2, 1, {100}, 64}, at::kBFloat16, AttentionKernel::Tiled);
  if (kernels::bf16_attention(all.query) == kernels::Bf16Attention::Brgemm)
    GTEST_SKIP() << "this processor multiplies bf16 otherwise; no command enables it, another processor does";
  const auto attend = [&](const at::Tensor& queries) {
    return kernels::attend(queries, all.key, all.value, Mask::None, AttentionKernel::Tiled);
  };
  const AttentionPart whole = attend(all.query);
  for (const std::int64_t first : {0, 1, 37, 80}) {
    const AttentionPart part = attend(all.query.narrow(2, first, 20).contiguous());
    expect_same_bits(part.output, whole.output.narrow(2, first, 20), "output");
    expect_same_bits(part.log_sum_exp, whole.log_sum_exp.narrow(2, first, 20), "log-sum-exp");
  }
}

TEST_P(TiledAttention, CarriesAScoreThatIsNoNumberIntoTheOutput) {
  for (const std::int64_t width : {6, 32}) {
    Sequences all({1, 1, {5}, width}, GetParam(), AttentionKernel::Tiled);
    all.query.select(2, 3).fill_(NAN);
    const at::Tensor output = forward(all, 0).output;
    EXPECT_TRUE(output.select(2, 3).isnan().all().item<bool>());
    EXPECT_FALSE(output.narrow(2, 0, 3).isnan().any().item<bool>());
  }
}

// Documents over several tiles: what no query of a tile sees is not a number, and no result of that tile
// tells.
class SkippedTiles : public TiledAttention {
 protected:
  static constexpr std::int64_t kTokens = 1500;

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

  Sequences sequences{
      {2, 1, {kTokens}, GetParam() == at::kFloat ? 6 : 64}, GetParam(), AttentionKernel::Tiled};
  const std::int64_t query_tiles = (kTokens + kernels::kQueries - 1) / kernels::kQueries;
  const std::int64_t key_tiles = (kTokens + kernels::kKeys - 1) / kernels::kKeys;
};

INSTANTIATE_TEST_SUITE_P(Types, SkippedTiles, ::testing::Values(at::kFloat, at::kBFloat16));

TEST_P(SkippedTiles, AreAllThatNoQuerySees) {
  sequences.draw_documents(400);
  sequences.documents = sequences.documents.narrow(0, 0, 1);
  const at::Tensor query = sequences.query.narrow(0, 0, 1).contiguous(),
                   key = sequences.key.narrow(0, 0, 1).contiguous(),
                   value = sequences.value.narrow(0, 0, 1).contiguous(),
                   grad = sequences.grad_output.narrow(0, 0, 1).contiguous();
  const kernels::Visible visible = sequences.visible(0, 0);
  const auto attend = [&](const at::Tensor& keys, const at::Tensor& values) {
    return kernels::attend(query, keys, values, visible, AttentionKernel::Tiled);
  };
  AttentionPart whole = attend(key, value);
  whole.output = whole.output.to(GetParam());
  const auto gradients = [&](const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
    return kernels::attend_backward(grad, queries, keys, values, whole, visible, AttentionKernel::Tiled);
  };
  const auto wanted = gradients(query, key, value);
  int skipped = 0;
  for (std::int64_t keys = 0; keys < key_tiles; ++keys) {
    const at::Tensor bad_key = spoilt(key, keys, kernels::kKeys),
                     bad_value = spoilt(value, keys, kernels::kKeys);
    AttentionPart part = attend(bad_key, bad_value);
    part.output = part.output.to(GetParam());
    const auto back = gradients(query, bad_key, bad_value);
    for (std::int64_t queries = 0; queries < query_tiles; ++queries) {
      if (sees(queries, keys)) continue;
      ++skipped;
      const auto tile = [&](const at::Tensor& x) { return tile_of(x, queries, kernels::kQueries); };
      expect_same_bits(tile(part.output), tile(whole.output), "output");
      expect_same_bits(tile(back.query), tile(wanted.query), "gradient of the queries");
    }
  }
  for (std::int64_t queries = 0; queries < query_tiles; ++queries) {
    const auto back = gradients(spoilt(query, queries, kernels::kQueries), key, value);
    for (std::int64_t keys = 0; keys < key_tiles; ++keys) {
      if (sees(queries, keys)) continue;
      const auto tile = [&](const at::Tensor& x) { return tile_of(x, keys, kernels::kKeys); };
      expect_same_bits(tile(back.key), tile(wanted.key), "gradient of the keys");
      expect_same_bits(tile(back.value), tile(wanted.value), "gradient of the values");
    }
  }
  EXPECT_GT(skipped, query_tiles * key_tiles / 2);
}

TEST(Attention, LogSumExpIsThatOfTheScoresSeen) {
  const Sequences all({4, 2, {5, 3}}, at::kDouble, AttentionKernel::Aten);
  const at::Tensor keys = all.key.repeat_interleave(2, 1);
  const at::Tensor scores = at::matmul(all.query, keys.transpose(-1, -2)) / std::sqrt(6.0);
  const at::Tensor hidden_from = at::ones({8, 8}, at::kBool).triu(1);
  const at::Tensor wanted = scores.masked_fill(hidden_from, -INFINITY).logsumexp(-1);
  expect_near(forward(all, 1).log_sum_exp, wanted.narrow(2, 5, 3), 1e-12, "log-sum-exp");
}

TEST(Merge, PartsOfVeryDifferentWeightStayFinite) {
  AttentionPart total{random_tensor({1, 1, 1, 4}, at::kFloat, 1),
                      at::zeros({1, 1, 1}, at::kFloat).fill_(-500.0)};
  const AttentionPart heavy{random_tensor({1, 1, 1, 4}, at::kFloat, 2),
                            at::zeros({1, 1, 1}, at::kFloat).fill_(500.0)};
  kernels::merge(total, heavy);
  expect_same_bits(total.output, heavy.output, "the heavy part is all that counts");
  expect_same_bits(total.log_sum_exp, heavy.log_sum_exp, "and its log-sum-exp");
}

}  // namespace
}  // namespace penstock::testing
