// SPDX-License-Identifier: Apache-2.0
// Tries of small models, sound and damaged.
#include "files/tokenizers/normalizer_check.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "failure.h"
#include "files/tokenizers/sentencepiece.h"

namespace penstock::files {
namespace {

constexpr std::uint32_t kValue = 1u << 31, kLeaf = 1u << 8;

// A unit that is reached by the byte `label`, and whose children are `distance` away.
std::uint32_t unit(std::uint32_t label, std::uint32_t distance) { return label | distance << 10; }

// One block of units: the root's children are the block itself.
struct Trie {
  std::array<std::uint32_t, 256> units{};
  std::string texts{"a\0", 2};

  std::string map() const {
    const std::uint32_t length = sizeof units;
    std::string bytes(sizeof length + sizeof units, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    std::memcpy(bytes.data() + sizeof length, units.data(), sizeof units);
    return bytes + texts;
  }
};

std::string field(int number, const std::string& bytes) {
  std::string text{static_cast<char>(number << 3 | 2)};
  std::size_t rest = bytes.size();
  for (; rest >= 128; rest >>= 7) text += static_cast<char>(rest % 128 | 128);
  return text + static_cast<char>(rest) + bytes;
}

bool is_sound(const std::string& map, int spec = 3) {
  try {
    check_normalizers(field(spec, field(1, "name") + field(2, map)), "model");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

TEST(CheckNormalizers, TakesTriesThatStayWithinThemselves) {
  Trie trie;
  EXPECT_TRUE(is_sound(""));
  EXPECT_TRUE(is_sound(trie.map()));
  trie.units[5] = unit(5, 3) | kLeaf;  // its leaf is unit 5 ^ 3
  trie.units[6] = kValue | 1;
  EXPECT_TRUE(is_sound(trie.map()));
  trie.units[7] = unit(7, 1) | kLeaf;  // words that end alike share units
  EXPECT_TRUE(is_sound(trie.map()));
}

TEST(CheckNormalizers, RefusesTriesThatLeadBeyondThemselves) {
  for (const int spec : {3, 5}) {
    Trie trie;
    trie.units[7] = unit(7, 256);
    EXPECT_FALSE(is_sound(trie.map(), spec));
    EXPECT_TRUE(is_sound(trie.map(), 4)) << "no normalizer";
  }
  Trie far;
  far.units[5] = unit(5, 3) | kLeaf;
  far.units[6] = kValue | 2;  // behind the texts
  EXPECT_FALSE(is_sound(far.map()));
}

// SentencePiece follows the root whatever it is marked as.
TEST(CheckNormalizers, RefusesARootThatIsAValue) {
  Trie trie;
  trie.units[0] = kValue;
  EXPECT_FALSE(is_sound(trie.map()));
}

TEST(CheckNormalizers, RefusesPathsWithMoreLeavesThanSentencePieceKeeps) {
  Trie cycle;
  cycle.units[5] = unit(5, 5) | kLeaf;  // its children are the root's
  EXPECT_FALSE(is_sound(cycle.map()));
  for (const std::uint32_t words : {32u, 33u}) {  // "a", "aa", ...: blocks of children at 0, 2, 4, ...
    Trie nested;
    for (std::uint32_t i = 0; i < 2 * words; i += 2) {
      nested.units[i + 1] = unit(1, (i + 1) ^ (i + 2)) | kLeaf;
      nested.units[i + 2] = kValue;
    }
    EXPECT_EQ(is_sound(nested.map()), words == 32) << words;
  }
}

TEST(CheckNormalizers, ReadsFieldsAsProtobufDoes) {
  Trie trie;
  trie.units[7] = unit(7, 256);
  const std::string spec = field(2, trie.map());
  const std::string tag = "\x9A\x80\x80\x80\x10";  // of field 3, and bit 32
  EXPECT_THROW(check_normalizers(tag + field(3, spec).substr(1), "model"), InputError);
}

// A model's own samples are encoded while it is loaded.
TEST(CheckNormalizers, IsAskedBeforeSentencePieceLoadsAModel) {
  Trie trie;
  trie.units[7] = unit(7, 256);
  EXPECT_NE(failure<InputError>([&] {
              SentencePiece(field(3, field(2, trie.map())), "model");
            }).find("its table of characters is damaged"),
            std::string::npos);
}

TEST(CheckNormalizers, RefusesMapsThatAreCutOrHaveNoEnd) {
  const std::string map = Trie().map();
  for (const std::size_t left : {1, 3, 4, 500, 1027, 1028})
    EXPECT_FALSE(is_sound(map.substr(0, left))) << left;
  EXPECT_FALSE(is_sound(map.substr(0, map.size() - 1))) << "the last text has no end";
  std::string other = map;
  other[0] = 4;  // a trie of one unit
  EXPECT_FALSE(is_sound(other));
}

}  // namespace
}  // namespace penstock::files
