// SPDX-License-Identifier: Apache-2.0
// Pairs that documents leave, and slices of equal work.
#include "model/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace penstock::model {
namespace {

Documents random_documents(std::uint64_t key, Tokens tokens, int sequences, Tokens longest) {
  Documents documents(static_cast<std::size_t>(sequences));
  std::uint64_t drawn = 0;
  for (auto& lengths : documents) {
    for (Tokens left = tokens; left > 0; left -= lengths.back()) {
      const auto length =
          1 + static_cast<Tokens>(random_bits(key, drawn++) % static_cast<std::uint64_t>(longest));
      lengths.push_back(std::min(length, left));
    }
  }
  return documents;
}

double counted(const Documents& documents, const TokenRange& queries, const TokenRange& keys) {
  double pairs = 0;
  for (const auto& lengths : documents) {
    Tokens begin = 0;
    for (const Tokens length : lengths) {
      for (Tokens q = begin; q < begin + length; ++q) {
        for (Tokens k = begin; k <= q; ++k) {
          const bool query = q >= queries.begin && q < queries.begin + queries.length;
          pairs += query && k >= keys.begin && k < keys.begin + keys.length ? 1 : 0;
        }
      }
      begin += length;
    }
  }
  return pairs;
}

TEST(Documents, CountPairsAsALoopDoes) {
  for (std::uint64_t key = 0; key < 30; ++key) {
    const Documents documents =
        random_documents(key, 40, 1 + static_cast<int>(key % 3), 3 + static_cast<Tokens>(key));
    for (Tokens query = 0; query < 40; query += 7) {
      for (Tokens keys = 0; keys < 40; keys += 5) {
        const TokenRange asked{query, std::min<Tokens>(9, 40 - query)},
            read{keys, std::min<Tokens>(11, 40 - keys)};
        EXPECT_EQ(attended_pairs(documents, asked, read), counted(documents, asked, read));
      }
    }
  }
}

TEST(Documents, CountPairsWithEarlierKeysAtOnce) {
  for (std::uint64_t key = 0; key < 20; ++key) {
    const Documents documents = random_documents(key, 40, 2, 5 + 2 * static_cast<Tokens>(key));
    for (const TokenRange queries : {TokenRange{10, 7}, TokenRange{16, 24}, TokenRange{39, 1}}) {
      const std::vector<TokenRange> keys{{0, 3}, {3, 0}, {3, 4}, {7, 3}, {0, 10}};
      const std::vector<double> pairs = pairs_with_earlier(documents, queries, keys);
      for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(pairs[i], counted(documents, queries, keys[i]));
    }
  }
}

double work_of(const Documents& documents, const TokenRange& slice, const TokenWork& work) {
  return work.of(static_cast<double>(slice.length * std::ssize(documents)),
                 attended_pairs(documents, slice, {0, slice.begin + slice.length}));
}

double greatest(const Documents& documents, const std::vector<TokenRange>& cut, const TokenWork& work) {
  double most = 0;
  for (const TokenRange& slice : cut) most = std::max(most, work_of(documents, slice, work));
  return most;
}

// The least that the greatest of n slices can have, by trying all.
double best(const Documents& documents, Tokens begin, int n, Tokens unit, const TokenWork& work) {
  const Tokens tokens = sequence_length(documents);
  if (n == 1) return work_of(documents, {begin, tokens - begin}, work);
  double least = std::numeric_limits<double>::infinity();
  for (Tokens end = begin + unit; end < tokens; end += unit)
    least = std::min(least, std::max(work_of(documents, {begin, end - begin}, work),
                                     best(documents, end, n - 1, unit, work)));
  return least;
}

TEST(CutByWork, MakesTheGreatestSliceAsSmallAsAnyCutCan) {
  constexpr TokenWork kWork{.token = 3, .pair = 1};
  for (std::uint64_t key = 0; key < 20; ++key) {
    const Documents documents = random_documents(key, 23, 1 + static_cast<int>(key % 2), 20);
    for (int n = 1; n <= 4; ++n) {
      for (const Tokens unit : {1, 3}) {
        const auto cut = cut_by_work(documents, n, unit, kWork);
        EXPECT_DOUBLE_EQ(greatest(documents, cut, kWork), best(documents, 0, n, unit, kWork));
      }
    }
  }
}

TEST(CutByWork, CoversTheSequenceInUnits) {
  constexpr TokenWork kWork{.token = 10, .pair = 1};
  for (const Tokens tokens : {16, 61, 1024}) {
    for (const Tokens unit : {1, 4, 8}) {
      const Documents documents = random_documents(7, tokens, 2, tokens);
      for (int n = 1; n <= (tokens + unit - 1) / unit && n < 20; ++n) {
        Tokens begin = 0;
        for (const TokenRange& slice : cut_by_work(documents, n, unit, kWork)) {
          EXPECT_EQ(slice.begin, begin);
          EXPECT_GT(slice.length, 0);
          EXPECT_EQ(begin % unit, 0);
          begin += slice.length;
        }
        EXPECT_EQ(begin, tokens);
      }
    }
  }
  EXPECT_THROW(cut_by_work({{10}}, 11, 1, kWork), InputError);
}

TEST(CutByWork, GivesOneLongDocumentShorterSlicesTowardsItsEnd) {
  const auto cut = cut_by_work({{4096}}, 8, 1, {.token = 1000, .pair = 1});
  for (std::size_t i = 1; i < cut.size(); ++i) EXPECT_LE(cut[i].length, cut[i - 1].length);
  const Documents documents{{4096}};
  const TokenWork work{.token = 1000, .pair = 1};
  EXPECT_LT(greatest(documents, cut, work) * 8 / work_of(documents, {0, 4096}, work), 1.01);
}

}  // namespace
}  // namespace penstock::model
