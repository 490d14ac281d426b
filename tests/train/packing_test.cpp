// SPDX-License-Identifier: Apache-2.0
// Documents packed into samples, and samples shared out for equal work.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "files/megatron_files.h"
#include "scratch.h"
#include "train/data/balance.h"
#include "train/data/data.h"
#include "train/data/packing.h"
#include "train/drawn_rows.h"

namespace penstock::train {
namespace {

using penstock::testing::bin_of;
using penstock::testing::idx_of;

std::vector<Piece> random_pieces(std::uint64_t key, std::int64_t count, Tokens longest) {
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto length = 1 + static_cast<Tokens>(random_bits(key, static_cast<std::uint64_t>(i)) %
                                                static_cast<std::uint64_t>(longest));
    pieces.push_back({first, length, false});
    first += length;
  }
  return pieces;
}

TEST(Packing, HoldsEveryPieceOnceWithinTheCapacity) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    const auto pieces = random_pieces(key, 1 + static_cast<std::int64_t>(key * 7), key % 2 ? 100 : 13);
    const Packing packing(pieces, 100);
    std::set<std::int64_t> firsts;
    int half_empty = 0;
    for (std::int64_t index = 0; index < packing.samples(); ++index) {
      Tokens held = 0;
      for (const Piece& piece : packing.sample(index)) {
        EXPECT_TRUE(firsts.insert(piece.first).second);
        held += piece.length;
      }
      EXPECT_GT(held, 0);
      EXPECT_LE(held, 100);
      half_empty += held <= 50 ? 1 : 0;
    }
    EXPECT_EQ(firsts.size(), pieces.size());
    EXPECT_LE(half_empty, 1) << "the later of two would have fit the earlier";
  }
}

TEST(Packing, PutsEachPieceWhereTheLeastRoomIsLeft) {
  const std::vector<Piece> pieces{
      {0, 3, false}, {3, 6, false}, {9, 4, false}, {13, 7, false}, {20, 10, false}};
  const Packing packing(pieces, 10);
  ASSERT_EQ(packing.samples(), 3);
  const auto lengths = [&](std::int64_t index) {
    std::vector<Tokens> all;
    for (const Piece& piece : packing.sample(index)) all.push_back(piece.length);
    return all;
  };
  EXPECT_EQ(lengths(0), (std::vector<Tokens>{10}));
  EXPECT_EQ(lengths(1), (std::vector<Tokens>{7, 3}));
  EXPECT_EQ(lengths(2), (std::vector<Tokens>{6, 4}));
}

TEST(Packing, CutsLongDocumentsAndKnowsWhatComesBehindAPiece) {
  const std::vector<std::int64_t> ends{5, 30};
  EXPECT_EQ(pieces_of(2, ends, 10, true),
            (std::vector<Piece>{{2, 3, false}, {5, 10, true}, {15, 10, true}, {25, 5, false}}));
  for (const Piece& piece : pieces_of(2, ends, 10, false)) EXPECT_FALSE(piece.continues);
}

double greatest_share(std::span<const double> work, std::span<const std::int64_t> order, std::int64_t size) {
  std::vector<double> sums(order.size() / static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < order.size(); ++at)
    sums[at / static_cast<std::size_t>(size)] += work[static_cast<std::size_t>(order[at])];
  return *std::ranges::max_element(sums) * static_cast<double>(sums.size()) /
         std::accumulate(sums.begin(), sums.end(), 0.0);
}

TEST(Balance, SharesOutEveryDrawOnceAndLowersTheGreatestWork) {
  constexpr BatchShares kShares{.batch = 32, .replicas = 4, .micro_batch = 2};
  std::vector<double> work;
  for (std::uint64_t i = 0; i < 256; ++i) work.push_back(std::exp(0.5 * normal(3, i)));
  std::vector<std::int64_t> as_drawn(work.size());
  std::iota(as_drawn.begin(), as_drawn.end(), 0);
  std::vector<std::int64_t> order = balanced(64, work, kShares);
  EXPECT_LT(greatest_share(work, order, 8) - 1, (greatest_share(work, as_drawn, 8) - 1) / 3);
  EXPECT_LT(greatest_share(work, order, 2), greatest_share(work, as_drawn, 2));
  std::ranges::sort(order);
  EXPECT_EQ(order, as_drawn);
}

TEST(Balance, SharesOutWindowsThatEndWithinABatch) {
  constexpr BatchShares kShares{.batch = 8, .replicas = 2, .micro_batch = 2};
  for (std::int64_t first = 0; first < 9; ++first) {
    for (std::size_t count = 1; count < 20; ++count) {
      std::vector<double> work;
      for (std::uint64_t i = 0; i < count; ++i) work.push_back(uniform(5, i));
      std::vector<std::int64_t> order = balanced(first, work, kShares), all(count);
      std::iota(all.begin(), all.end(), 0);
      std::ranges::sort(order);
      EXPECT_EQ(order, all);
    }
  }
}

// Two parts of 16 have only the longer samples: any two, and not the first of every window.
TEST(Balance, FavoursNoPartOfAWindow) {
  constexpr BatchShares kShares{.batch = 4, .replicas = 1, .micro_batch = 4};
  std::vector<double> work(64, 1.0);
  for (std::size_t light = 0; light < 14; ++light) work[4 * light] = 0.25;
  std::vector<double> sums(16);
  for (std::int64_t window = 0; window < 400; ++window) {
    const std::vector<std::int64_t> order = balanced(64 * window, work, kShares);
    for (std::size_t i = 0; i < order.size(); ++i)
      sums[i / 4] += work[static_cast<std::size_t>(order[i])] / 400;
  }
  for (const double sum : sums) EXPECT_NEAR(sum, (50 + 14 * 0.25) / 16, 0.06);
}

constexpr std::int64_t kFirst = 1000;  // token: no other is one

struct PackingSetting {
  Scratch scratch;
  run::DataOptions data;
  run::TrainOptions train;

  // Documents of these lengths, whose tokens count up from kFirst.
  explicit PackingSetting(const std::vector<std::int32_t>& documents, const std::string& packing) {
    data.seq_len = 16;
    data.validation_fraction = 0;
    data.mask = "documents";
    data.packing = packing;
    data.window = 12;
    train.batch = 4;
    train.micro_batch = 1;
    std::vector<std::uint16_t> tokens;
    for (const std::int32_t length : documents)
      for (std::int32_t i = 0; i < length; ++i)
        tokens.push_back(static_cast<std::uint16_t>(kFirst + tokens.size()));
    scratch.write("a.bin", bin_of(tokens));
    scratch.write("a.idx", idx_of(documents).bytes());
    data.megatron.push_back(scratch / "a");
  }
  TokenData open(bool trims = false) const {
    return TokenData(data, train, 60'000, {.work = {.token = 10, .pair = 1}, .replicas = 2, .trims = trims});
  }
};

std::vector<std::int32_t> lengths(std::uint64_t key, std::int32_t longest) {
  std::vector<std::int32_t> lengths;
  for (std::uint64_t i = 0; i < 60; ++i)
    lengths.push_back(static_cast<std::int32_t>(random_bits(key, i) % static_cast<std::uint64_t>(longest)));
  return lengths;
}

// Tokens tell their places: every one is an input once per epoch, with the next of its document as target.
TEST(PackedData, ReadsEveryTokenOncePerEpochAndKeepsDocumentsTogether) {
  for (const char* packing : {"best_fit", "balanced"}) {
    const std::vector<std::int32_t> documents = lengths(9, 40);
    std::vector<std::int64_t> end_of;
    for (const std::int32_t length : documents)
      end_of.insert(end_of.end(), static_cast<std::size_t>(length), std::ssize(end_of) + length);
    const PackingSetting setting(documents, packing);
    const TokenData data = setting.open();
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      std::map<std::int64_t, int> seen;
      for (std::int64_t draw = epoch * data.samples(); draw < (epoch + 1) * data.samples(); ++draw) {
        // The batch that begins with this draw has it first.
        const StepTokens step = data.training_batch(draw);
        const auto* tokens = step.tokens[0].const_data_ptr<std::int64_t>();
        const auto* targets = step.targets[0].const_data_ptr<std::int64_t>();
        const auto* starts = step.documents[0].const_data_ptr<std::int64_t>();
        for (std::int64_t at = 0; at < setting.data.seq_len; ++at) {
          if (tokens[at] < kFirst) {
            EXPECT_EQ(targets[at], -1);
            EXPECT_EQ(starts[at], at);
            continue;
          }
          ++seen[tokens[at] - kFirst];
          const std::int64_t end = kFirst + end_of[static_cast<std::size_t>(tokens[at] - kFirst)];
          EXPECT_EQ(targets[at], tokens[at] + 1 < end ? tokens[at] + 1 : -1);
          if (starts[at] < at) {
            EXPECT_EQ(tokens[at - 1], tokens[at] - 1);
          }
        }
      }
      EXPECT_EQ(seen.size(), end_of.size()) << packing;
      for (const auto& [token, times] : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(PackedData, RepeatsItsBatchesAndCountsTargets) {
  for (const char* packing : {"best_fit", "balanced"}) {
    const PackingSetting setting(lengths(4, 20), packing);
    const TokenData data = setting.open(), again = setting.open();
    for (std::int64_t first : {0, 4, 20, 7}) {
      const StepTokens step = data.training_batch(first), same = again.training_batch(first);
      std::int64_t targets = 0;
      for (std::size_t j = 0; j < step.tokens.size(); ++j) {
        EXPECT_TRUE(step.tokens[j].equal(same.tokens[j]));
        targets += step.targets[j].ge(0).sum().item<std::int64_t>();
      }
      EXPECT_EQ(step.target_count, targets);
    }
  }
}

// Samples of 16, 12, 10 + 6 and 8 + 8 tokens, which do 296, 198, 236 and 232; the second 242 with its four
// tokens of padding.
TEST(PackedData, IsBalancedWithThePaddingThatThereIs) {
  const PackingSetting setting({16, 12, 10, 8, 8, 6}, "balanced");
  const auto greatest = [&](bool trims) {
    double most = 0;
    for (const run::StepContent& replica : setting.open(trims).contents(0, 2)) {
      double work = 0;
      for (const auto& micro_batch : replica.documents)
        for (const auto& sequence : micro_batch)
          for (const Tokens tokens : sequence) work += as_double(tokens * 10 + tokens * (tokens + 1) / 2);
      most = std::max(most, work);
    }
    return most;
  };
  EXPECT_EQ(greatest(false), 296 + 232);
  EXPECT_EQ(greatest(true), 296 + 198);
}

TEST(PackedData, RefusesLongDocumentsThatMustBeWhole) {
  PackingSetting setting({5, 17, 3}, "best_fit");
  setting.data.long_documents = "refuse";
  const std::string text = failure<InputError>([&] { setting.open(); });
  EXPECT_NE(text.find("the document at token 5 has 17 tokens, more than data.seq_len = 16"),
            std::string::npos)
      << text;
  setting.data.seq_len = 17;
  setting.open();
}

// Packing puts the longest documents first, which are no fair sample of all.
TEST(PackedData, EvaluatesTheSameRandomSamplesWhateverTheSeed) {
  std::vector<std::int32_t> documents(200, 4);
  std::ranges::fill(documents.begin() + 120, documents.begin() + 140, 16);  // 20 samples of 80 held out
  PackingSetting setting(documents, "best_fit");
  setting.data.split = "1,1,0";
  setting.train.evaluate_sequences = 20;
  const auto evaluated = [&] {
    const TokenData data = setting.open();
    std::vector<std::int64_t> tokens;
    for (std::int64_t index = 0; index < data.evaluation_batches(); ++index) {
      const StepTokens step = data.evaluation_batch(index);
      for (std::int64_t i = 0; i < 4; ++i) std::ranges::copy(row(step.tokens, i), std::back_inserter(tokens));
    }
    return tokens;
  };
  const std::vector<std::int64_t> tokens = evaluated();
  const auto of_longest = std::ranges::count_if(
      tokens, [](std::int64_t token) { return token >= kFirst + 480 && token < kFirst + 480 + 320; });
  EXPECT_GT(of_longest, 0);
  EXPECT_LT(of_longest, std::ssize(tokens) * 3 / 4);
  setting.train.seed = 7;
  EXPECT_EQ(evaluated(), tokens);
}

}  // namespace
}  // namespace penstock::train
