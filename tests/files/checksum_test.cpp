// SPDX-License-Identifier: Apache-2.0
#include "files/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace penstock::files {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kGenerator = 0x17d9f5c46630b61;

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(random_bits(1, i));
  return words;
}

std::uint64_t sum_of(std::span<const std::uint32_t> words, std::uint64_t first = 0) {
  return word_sum(std::as_bytes(words), first);
}

TEST(WordSum, IsThePolynomial) {
  __extension__ using Wide = unsigned __int128;
  for (const std::size_t count : {0, 1, 3, 4, 5, 255, 256, 257, 1000}) {
    const auto words = random_words(count);
    Wide expected = 0;
    for (std::size_t i = count; i-- > 0;) expected = (expected * kGenerator + words[i]) % kPrime;
    EXPECT_EQ(sum_of(words), static_cast<std::uint64_t>(expected)) << count;
  }
  const std::vector<std::uint32_t> greatest(5000, 0xffffffff);
  Wide expected = 0;
  for (const std::uint32_t word : greatest) expected = (expected * kGenerator + word) % kPrime;
  EXPECT_EQ(sum_of(greatest), static_cast<std::uint64_t>(expected));
}

TEST(WordSum, IsTheSumOfThePartsHoweverItIsCut) {
  const auto words = random_words(3000);
  const std::span<const std::uint32_t> all = words;
  for (const std::size_t part : {1, 7, 64, 256, 1001, 2999, 3000}) {
    std::vector<std::uint64_t> sums;
    for (std::size_t begin = 0; begin < all.size(); begin += part) {
      sums.push_back(sum_of(all.subspan(begin, std::min(part, all.size() - begin)), begin));
    }
    std::uint64_t forwards = 0, backwards = 0;
    for (const std::uint64_t sum : sums) forwards = add_word_sums(forwards, sum);
    for (auto sum = sums.rbegin(); sum != sums.rend(); ++sum) backwards = add_word_sums(*sum, backwards);
    EXPECT_EQ(forwards, sum_of(words)) << part;
    EXPECT_EQ(backwards, forwards);
  }
}

TEST(WordSum, FindsEveryFlippedBitAndEveryExchangeOfTwoWords) {
  auto words = random_words(600);
  const std::uint64_t sum = sum_of(words);
  for (std::uint32_t& word : words) {
    for (int bit = 0; bit < 32; ++bit) {
      word ^= std::uint32_t{1} << bit;
      ASSERT_NE(sum_of(words), sum);
      word ^= std::uint32_t{1} << bit;
    }
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::swap(words[i - 1], words[i]);
    ASSERT_NE(sum_of(words), sum);
    std::swap(words[i - 1], words[i]);
  }
}

TEST(WordSum, ReadsFromEveryAddressAndFillsUpTheLastWord) {
  const auto words = random_words(301);
  std::vector<std::byte> room(words.size() * 4 + 8);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::memcpy(room.data() + offset, words.data(), words.size() * 4);
    EXPECT_EQ(word_sum(std::span(room).subspan(offset, words.size() * 4)), sum_of(words));
  }
  const std::uint32_t word = 0x00123456;
  EXPECT_EQ(word_sum(std::as_bytes(std::span(&word, 1)).first(3)), word);
}

}  // namespace
}  // namespace penstock::files
