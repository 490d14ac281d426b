// SPDX-License-Identifier: Apache-2.0
#include "files/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "files/text_bytes.h"
#include "scratch.h"

namespace penstock::files {
namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

std::string file_of(std::string_view header, std::size_t data_bytes) {
  return length_bytes(header.size()) + std::string(header) + std::string(data_bytes, '\x01');
}

std::string refusal_of(std::string_view contents) {
  const Scratch scratch;
  scratch.write("x.safetensors", contents);
  return failure<InputError>([&] { Safetensors(scratch / "x.safetensors"); });
}

// The refusal of a header above `data_bytes` bytes of data.
std::string refusal(std::string_view header, std::size_t data_bytes) {
  return refusal_of(file_of(header, data_bytes));
}

// {"<name>": a tensor of one dimension}
std::string entry(std::string_view name, std::string_view type, std::string_view shape,
                  std::string_view offsets) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) + "\",\"shape\":[" +
         std::string(shape) + "],\"data_offsets\":[" + std::string(offsets) + "]}";
}
std::string header(std::initializer_list<std::string> entries) {
  std::string text = "{";
  for (const std::string& one : entries) text += (text.size() > 1 ? "," : "") + one;
  return text + "}";
}

#define EXPECT_SAYS(text, words) EXPECT_NE(std::string(text).find(words), std::string::npos) << text

TEST(Safetensors, ReadsTheExampleOfTheFormat) {
  const Scratch scratch;
  scratch.write("x", file_of(header({"\"__metadata__\":{\"format\":\"pt\"}", entry("b", "BF16", "2", "24,28"),
                                     entry("a", "F32", "2,3", "0,24"), entry("none", "F64", "0,7", "24,24"),
                                     entry("one", "I8", "", "28,29")}) +
                                 "   ",
                             29));
  const Safetensors file(scratch / "x");
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.find("a")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file.find("b")->type, ElementType::BF16);
  EXPECT_EQ(file.find("none")->bytes.size(), 0u);
  EXPECT_EQ(file.find("one")->shape, std::vector<std::int64_t>{});
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const Scratch scratch;
  const std::string small(3, 's'), wide(48, 'w'), half(8, 'h');
  const StoredTensor tensors[] = {{"small \"x\"\n", ElementType::U8, {3}, text_bytes(small)},
                                  {"wide", ElementType::F64, {2, 3}, text_bytes(wide)},
                                  {"half", ElementType::BF16, {4}, text_bytes(half)},
                                  {"empty", ElementType::F32, {0}, {}}};
  write_safetensors(scratch / "x", tensors, {{"step", "5"}});
  const Safetensors file(scratch / "x");
  EXPECT_EQ(file.metadata(), (Metadata{{"step", "5"}}));
  EXPECT_EQ(file.tensors().size(), 4u);
  for (const StoredTensor& tensor : tensors) {
    const StoredTensor* read = file.find(tensor.name);
    ASSERT_NE(read, nullptr) << tensor.name;
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(read->type, tensor.type);
    EXPECT_TRUE(std::ranges::equal(read->bytes, tensor.bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read->bytes.data()) % size_of(tensor.type), 0u)
        << "not aligned";
  }
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const Scratch scratch;
  const std::string data = "abcd";
  write_safetensors(scratch / "x", std::vector<StoredTensor>{{"t", ElementType::I32, {1}, text_bytes(data)}});
  const std::string json = R"({"t":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(scratch.read("x"), length_bytes(56) + json + std::string(56 - json.size(), ' ') + "abcd");
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  EXPECT_SAYS(refusal_of(length_bytes(1000) + "{}"), "says its header has 1000 bytes, but only 2 follow");
  EXPECT_SAYS(refusal_of(length_bytes(~0ull) + "{}"), "at most 100000000");
  EXPECT_SAYS(refusal_of(length_bytes(100'000'001)), "at most 100000000");
  EXPECT_SAYS(refusal_of("1234567"), "has 7 bytes");
  EXPECT_SAYS(refusal_of(""), "has 0 bytes");
}

TEST(Safetensors, RefusesAHeaderThatIsNotJson) {
  EXPECT_SAYS(refusal("{\"a\":", 0), "not JSON");
  EXPECT_SAYS(refusal("", 0), "not JSON");
  EXPECT_SAYS(refusal("{\"\xff\":1}", 0), "not JSON");
  EXPECT_SAYS(refusal("[1]", 0), "not a JSON object");
  EXPECT_SAYS(refusal(header({"\"a\":3"}), 0), "is not an object");
  EXPECT_SAYS(refusal("{\"a\":" + std::string(100000, '[') + "}", 0), "nested too deeply");
}

TEST(Safetensors, RefusesNamesThatStandTwice) {
  EXPECT_SAYS(refusal(header({entry("a", "U8", "1", "0,1"), entry("a", "U8", "1", "1,2")}), 2),
              "the name \"a\" twice");
  EXPECT_SAYS(refusal("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
              "the name \"dtype\" twice");
}

TEST(Safetensors, RefusesOffsetsThatOverlapOrLeaveHoles) {
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4"), entry("b", "U8", "4", "2,6")}), 6),
              "tensor \"b\" begins at 2; expected 4: it overlaps");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4"), entry("b", "U8", "4", "0,4")}), 4), "overlaps");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4"), entry("b", "U8", "4", "5,9")}), 9),
              "tensor \"b\" begins at 5; expected 4: there is a hole");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "1,5")}), 5), "hole");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4")}), 5), "end at 4, but there are 5 bytes");
  EXPECT_SAYS(refusal("{}", 1), "end at 0, but there are 1 bytes");
}

TEST(Safetensors, RefusesOffsetsThatRunBackwardsOrPastTheEnd) {
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "4,0")}), 4), "run backwards: [4, 0)");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4")}), 3), "past the end of the data, 3 bytes");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "-4,0")}), 4), "data_offsets; expected whole numbers");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,4.0")}), 4), "data_offsets; expected whole numbers");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0,99999999999999999999")}), 4),
              "expected whole numbers");
  EXPECT_SAYS(refusal(header({entry("a", "U8", "4", "0")}), 4), "has 1 data_offsets");
}

TEST(Safetensors, RefusesShapesThatOverflowOrDisagree) {
  EXPECT_SAYS(refusal(header({entry("a", "F32", "4294967296,4294967296,4", "0,4")}), 4), "overflows");
  EXPECT_SAYS(refusal(header({entry("a", "F64", "4611686018427387903", "0,8")}), 8), "overflows");
  EXPECT_SAYS(refusal(header({entry("a", "F32", "2", "0,4")}), 4), "need 8");
  EXPECT_SAYS(refusal(header({entry("a", "F32", "-1", "0,4")}), 4), "shape; expected whole numbers");
  EXPECT_SAYS(refusal(header({entry("a", "F32", "0,4611686018427387903,9", "0,4")}), 4), "need 0");
}

TEST(Safetensors, RefusesUnknownTypesAndMissingMembers) {
  EXPECT_SAYS(refusal(header({entry("a", "F12", "1", "0,1")}), 1), "unknown dtype \"F12\"");
  EXPECT_SAYS(refusal("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1), "has no dtype");
  EXPECT_SAYS(refusal("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1), "has no shape");
  EXPECT_SAYS(refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":3,\"data_offsets\":[0,1]}}", 1),
              "shape that is not a list");
  EXPECT_SAYS(refusal("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__");
  EXPECT_SAYS(refusal("{\"__metadata__\":[]}", 0), "__metadata__");
}

TEST(Safetensors, RefusesAFileTruncatedAtAnyByte) {
  const std::string whole =
      file_of(header({entry("a", "F32", "2,3", "0,24"), entry("b", "U8", "4", "24,28")}), 28);
  EXPECT_EQ(refusal_of(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal_of(whole.substr(0, length)), "");
}

TEST(Safetensors, SurvivesFlippedBitsInItsHeader) {
  const std::string whole =
      file_of(header({entry("a", "F32", "2,3", "0,24"), entry("b", "U8", "4", "24,28")}), 28);
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 28); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    refusal_of(damaged);  // refused or read; anything else ends the test
  }
}

TEST(MappedFile, NamesWhatCannotBeOpened) {
  const Scratch scratch;
  EXPECT_SAYS(failure<InputError>([&] { MappedFile(scratch / "none"); }),
              "none: cannot be opened: No such file");
  EXPECT_SAYS(failure<InputError>([&] { MappedFile(scratch.path()); }), "is a directory");
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_SAYS(failure<InputError>([&] { MappedFile(scratch / "pipe"); }), "not a regular file");
}

TEST(MappedFile, ReadsFilesOfAnySizeAndMoves) {
  const Scratch scratch;
  scratch.write("empty", "");
  scratch.write("text", "some text");
  EXPECT_EQ(MappedFile(scratch / "empty").text(), "");
  MappedFile first(scratch / "text"), second(scratch / "empty");
  second = std::move(first);
  EXPECT_EQ(MappedFile(std::move(second)).text(), "some text");
  EXPECT_EQ(read_text(scratch / "text", 9), "some text");
  const std::string refusal = failure<InputError>([&] { read_text(scratch / "text", 8); });
  EXPECT_SAYS(refusal, "has 9 bytes; at most 8 are read: give a smaller");
}

}  // namespace
}  // namespace penstock::files
