// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "files/megatron/data.h"
#include "files/megatron_files.h"
#include "files/text_bytes.h"
#include "scratch.h"

namespace penstock::files {
namespace {

using testing::bin_of;
using testing::idx_of;
using testing::IdxFields;

std::string file_refusal(const std::string& idx, std::uint64_t bin_bytes) {
  return failure<InputError>([&] { MegatronIndex(text_bytes(idx), bin_bytes, "x.idx"); });
}
std::string index_refusal(const IdxFields& fields, std::uint64_t bin_bytes) {
  return file_refusal(fields.bytes(), bin_bytes);
}

#define EXPECT_SAYS(text, words) EXPECT_NE(std::string(text).find(words), std::string::npos) << text

TEST(MegatronIndex, ReadsTheArraysThatStandUnaligned) {
  IdxFields fields = idx_of({3, 0, 5, 2});
  fields.documents = {0, 1, 3, 4};  // the second document has two sequences
  fields.entries = 4;
  const std::string idx = fields.bytes();
  const MegatronIndex index(text_bytes(idx), 20, "x.idx");
  EXPECT_EQ(index.type(), TokenType::U16);
  EXPECT_EQ(index.sequences(), 4);
  EXPECT_EQ(index.documents(), 3);
  EXPECT_EQ(index.tokens(), 10);
  EXPECT_EQ(index.length(2), 5);
  EXPECT_EQ(index.offset(2), 6);
  for (const auto& [document, token] : {std::pair(0, 0), std::pair(1, 3), std::pair(2, 8), std::pair(3, 10)})
    EXPECT_EQ(index.document_begin(document), token);
}

TEST(MegatronIndex, ReadsAnIndexOfNothing) {
  const std::string idx = idx_of({}).bytes();
  EXPECT_EQ(MegatronIndex(text_bytes(idx), 0, "").tokens(), 0);
  EXPECT_SAYS(file_refusal(idx, 2), "no sequences, but the .bin file has 2 bytes");
}

TEST(MegatronIndex, RefusesAnotherMagicVersionOrType) {
  IdxFields fields = idx_of({3});
  fields.magic[3] = 'X';
  EXPECT_SAYS(index_refusal(fields, 6), "x.idx: at byte 0 begins with \"MMIXIDX");
  fields = idx_of({3});
  fields.version = 2;
  EXPECT_SAYS(index_refusal(fields, 6), "at byte 9 has version 2; expected 1");
  fields = idx_of({3});
  for (const int type : {0, 9, 255}) {
    fields.dtype = static_cast<std::uint8_t>(type);
    EXPECT_SAYS(index_refusal(fields, 6), "at byte 17 has the unknown dtype " + std::to_string(type));
  }
  fields.dtype = 6;
  EXPECT_SAYS(index_refusal(fields, 6), "token ids are whole numbers");
}

TEST(MegatronIndex, RefusesAFileTruncatedAtAnyByteOrTooLong) {
  const std::string idx = idx_of({3, 4, 5}).bytes();
  EXPECT_EQ(file_refusal(idx, 24), "");
  for (std::size_t length = 0; length < idx.size(); ++length)
    EXPECT_NE(file_refusal(idx.substr(0, length), 24), "") << length;
  EXPECT_SAYS(file_refusal(idx + "x", 24), "need 102 bytes; the file has 103");
}

TEST(MegatronIndex, RefusesCountsThatTheFileDoesNotJustify) {
  for (const std::uint64_t count : {5ull, 1ull << 32, 1ull << 60, ~0ull}) {
    IdxFields fields = idx_of({3, 4, 5});
    fields.sequences = count;
    EXPECT_NE(index_refusal(fields, 24), "") << count;
    fields = idx_of({3, 4, 5});
    fields.entries = count;
    EXPECT_NE(index_refusal(fields, 24), "") << count;
  }
}

TEST(MegatronIndex, RefusesSizesThatDisagreeWithTheBinFile) {
  EXPECT_SAYS(index_refusal(idx_of({3, 4}), 16),
              "the last sequence ends at byte 14, but the .bin file has 16");
  EXPECT_SAYS(index_refusal(idx_of({3, 4}), 12), "has 4 tokens from byte 6 on; the .bin file ends at 12");
  EXPECT_SAYS(index_refusal(idx_of({3, 4}), 13), "not a multiple of it");
  IdxFields fields = idx_of({3, 4});
  fields.lengths[0] = 2;
  EXPECT_SAYS(index_refusal(fields, 14),
              "says sequence 1 begins at byte 6; expected 4, where the one before it ends");
  fields.lengths[0] = -3;
  EXPECT_SAYS(index_refusal(fields, 14), "says sequence 0 has -3 tokens");
  fields = idx_of({3, 4});
  fields.offsets[0] = 2;
  EXPECT_SAYS(index_refusal(fields, 14), "begins at byte 2; expected 0");
}

TEST(MegatronIndex, RefusesDocumentsThatRunBackwardsOrPastTheEnd) {
  for (const std::vector<std::int64_t>& documents : {std::vector<std::int64_t>{0, 2, 1, 3},
                                                     {1, 1, 2, 3},
                                                     {0, 1, 2, 2},
                                                     {0, 1, 9, 3},
                                                     {0, -1, 2, 3},
                                                     {0, 1, 2, 4}}) {
    IdxFields fields = idx_of({3, 4, 5});
    fields.documents = documents;
    EXPECT_SAYS(index_refusal(fields, 24), "begins with sequence");
  }
}

// Between what is checked at once, damage is found by those who read there.
TEST(MegatronIndex, FindsDamageInTheMiddleWhenItIsRead) {
  const std::int64_t sequences = 2 * MegatronIndex::kCheckedAtOnce + 1000, middle = sequences / 2;
  const std::int64_t bin_bytes = 2 * 3 * sequences;
  IdxFields fields = idx_of(std::vector<std::int32_t>(static_cast<std::size_t>(sequences), 3));
  const auto read_at = [&](std::int64_t sequence) {
    const std::string idx = fields.bytes();
    const MegatronIndex index(text_bytes(idx), static_cast<std::uint64_t>(bin_bytes), "x.idx");
    return failure<InputError>([&] { index.check_tokens(3 * sequence + 1, 4); });
  };
  EXPECT_EQ(read_at(middle), "");
  fields.lengths[middle] = 4;
  EXPECT_SAYS(read_at(middle), "begins at byte");
  EXPECT_EQ(read_at(middle + 300), "");
  fields.lengths[middle] = 3;
  for (const std::int64_t damaged :
       {std::int64_t{-1}, std::int64_t{0}, bin_bytes + 2, INT64_MAX, INT64_MIN}) {
    fields.offsets[middle] = damaged;
    EXPECT_NE(read_at(middle), "") << damaged;
  }
}

// Otherwise tokens would attend to those of other documents.
TEST(MegatronIndex, FindsDamagedDocumentsInTheMiddleWhenTheyAreRead) {
  const std::int64_t sequences = 2 * MegatronIndex::kCheckedAtOnce + 1000, middle = sequences / 2;
  const IdxFields sound = idx_of(std::vector<std::int32_t>(static_cast<std::size_t>(sequences), 3));
  const auto refusal = [&](const IdxFields& fields, std::int64_t document) {
    const std::string idx = fields.bytes();
    const MegatronIndex index(text_bytes(idx), static_cast<std::uint64_t>(2 * 3 * sequences), "x.idx");
    return failure<InputError>([&] {
      const std::int64_t found = index.document_of(3 * document + 1);
      EXPECT_EQ(found, document);
      EXPECT_EQ(index.document_begin(found), 3 * document);
    });
  };
  EXPECT_EQ(refusal(sound, middle), "");
  for (const std::int64_t damaged : {std::int64_t{0}, middle - 2, middle + 2, sequences}) {
    IdxFields fields = sound;
    fields.documents[middle] = damaged;
    EXPECT_SAYS(refusal(fields, middle), "begins with sequence") << damaged;
  }
  IdxFields page = sound;
  std::fill_n(page.documents.begin() + middle - 256, 512, 0);
  for (const std::int64_t document : {middle - 300, middle, middle + 300})
    EXPECT_SAYS(refusal(page, document), "begins with sequence 0") << document;
  IdxFields moved = sound;
  moved.offsets[middle] += 2;
  EXPECT_SAYS(refusal(moved, middle), "where the one before it ends");
}

TEST(MegatronData, ReadsTokensOfEveryType) {
  const Scratch scratch;
  for (const std::uint8_t dtype : {1, 2, 3, 4, 5, 8}) {
    IdxFields fields = idx_of({2, 3});
    fields.dtype = dtype;
    const std::int64_t size = size_of(static_cast<TokenType>(dtype));
    fields.offsets[1] = 2 * size;
    std::string bin;
    for (std::int64_t token = 100; token < 105; ++token)
      bin.append(reinterpret_cast<const char*>(&token), static_cast<std::size_t>(size));
    scratch.write("x.idx", fields.bytes());
    scratch.write("x.bin", bin);
    std::vector<std::int64_t> tokens(4);
    MegatronData(scratch / "x").read(1, tokens, 200);
    EXPECT_EQ(tokens, (std::vector<std::int64_t>{101, 102, 103, 104})) << int{dtype};
  }
}

TEST(MegatronData, NamesTheFirstTokenOutsideTheVocabulary) {
  const Scratch scratch;
  scratch.write("x.idx", idx_of({5}).bytes());
  scratch.write("x.bin", bin_of({1, 2, 259, 4, 5}));
  std::vector<std::int64_t> tokens(2);
  const MegatronData data(scratch / "x");
  EXPECT_EQ(failure<InputError>([&] { data.read(3, tokens, 259); }), "");
  EXPECT_SAYS(failure<InputError>([&] { data.read(1, tokens, 259); }),
              "x.bin: token 259 at byte 4 is outside the vocabulary; expected 0 to 258");
  EXPECT_SAYS(failure<InputError>([&] { MegatronData(scratch / "none"); }), "none.bin: cannot be opened");
}

TEST(MegatronIndex, RefusesSequencesWithoutADocument) {
  IdxFields fields = idx_of({3});
  fields.documents = {1};
  fields.entries = 1;
  EXPECT_SAYS(index_refusal(fields, 6), "has no document for its 1 sequence;");
  fields.documents = {1, 1};
  fields.entries = 2;
  EXPECT_SAYS(index_refusal(fields, 6), "document 0 begins with sequence 1");
}

}  // namespace
}  // namespace penstock::files
