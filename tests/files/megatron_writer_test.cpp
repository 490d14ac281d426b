// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "files/megatron/data.h"
#include "files/megatron_files.h"
#include "scratch.h"

namespace penstock::files {
namespace {

using testing::bin_of;

// Documents of tokens 0, 1, 2, ...; added in pieces of at most `piece` tokens.
void write(const std::string& prefix, const std::vector<int>& documents, std::int64_t longest, int piece) {
  MegatronWriter writer(prefix, TokenType::U16, longest);
  std::uint16_t next = 0;
  for (const int length : documents) {
    for (int done = 0; done < length; done += piece) {
      std::vector<std::uint16_t> tokens;
      for (int i = done; i < std::min(length, done + piece); ++i) tokens.push_back(next++);
      writer.add(std::as_bytes(std::span(tokens)));
    }
    writer.end_document();
  }
  writer.commit();
}

TEST(MegatronWriter, WritesMegatronsLayoutFieldByField) {
  const Scratch scratch;
  write(scratch / "x", {3, 0, 5}, 1000, 2);
  EXPECT_EQ(scratch.read("x.bin"), bin_of({0, 1, 2, 3, 4, 5, 6, 7}));
  std::string wanted("MMIDIDX\0\0", 9);
  testing::put(wanted, std::uint64_t{1});
  testing::put(wanted, std::uint8_t{8});
  testing::put(wanted, std::uint64_t{2});
  testing::put(wanted, std::uint64_t{3});
  for (const std::int32_t length : {3, 5}) testing::put(wanted, length);
  for (const std::int64_t offset : {0, 6}) testing::put(wanted, offset);
  for (const std::int64_t document : {0, 1, 2}) testing::put(wanted, document);
  EXPECT_EQ(scratch.read("x.idx"), wanted);
}

TEST(MegatronWriter, ReadsBackTokenByTokenForAllSizes) {
  for (std::uint64_t round = 0; round < 40; ++round) {
    const Scratch scratch;
    std::vector<int> documents;
    for (std::uint64_t i = 0; i < random_bits(round, 0) % 12; ++i)
      documents.push_back(static_cast<int>(random_bits(round, i + 1) % 30));
    const auto longest = static_cast<std::int64_t>(1 + round % 9);
    write(scratch / "x", documents, longest, 1 + static_cast<int>(round % 5));
    const MegatronData data(scratch / "x");
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(data.tokens()));
    data.read(0, tokens, 1000);
    for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], static_cast<std::int64_t>(i));
    std::erase(documents, 0);
    ASSERT_EQ(data.index().documents(), static_cast<std::int64_t>(documents.size()));
    std::int64_t begin = 0;
    for (std::size_t document = 0; document < documents.size(); ++document) {
      EXPECT_EQ(data.index().document_begin(static_cast<std::int64_t>(document)), begin);
      begin += documents[document];
    }
    for (std::int64_t i = 0; i < data.index().sequences(); ++i) EXPECT_LE(data.index().length(i), longest);
  }
}

TEST(MegatronWriter, LeavesNothingWithoutACommit) {
  const Scratch scratch;
  { MegatronWriter(scratch / "x", TokenType::U16).add(std::as_bytes(std::span("ab", 2))); }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  EXPECT_NE(failure<RunError>([&] { MegatronWriter(scratch / "no/x", TokenType::U16); }).find("no/x.bin"),
            std::string::npos);
}

TEST(TokenType, IsU16ForSmallVocabularies) {
  EXPECT_EQ(token_type_for(65'499), TokenType::U16);
  EXPECT_EQ(token_type_for(65'500), TokenType::I32);
}

}  // namespace
}  // namespace penstock::files
