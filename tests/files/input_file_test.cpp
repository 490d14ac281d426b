// SPDX-License-Identifier: Apache-2.0
#include "files/input_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "files/checksum.h"
#include "scratch.h"

namespace penstock::files {
namespace {

#define EXPECT_SAYS(text, words) EXPECT_NE(std::string(text).find(words), std::string::npos) << text

constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

TEST(InputFile, VisitsAnyPartInOrder) {
  const Scratch scratch;
  std::string text(2 * kPieceBytes + 5, 'a');
  for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>(i / 1000 % 100);
  scratch.write("x", text);
  InputFile file(scratch / "x");
  EXPECT_EQ(file.size(), text.size());
  for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, text.size()}) {
    std::string read;
    file.read(begin, text.size() - begin, [&](std::span<const std::byte> piece) {
      read.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    EXPECT_TRUE(read == text.substr(begin)) << begin;
    EXPECT_EQ(word_sum(file, begin, text.size() - begin), word_sum(std::as_bytes(std::span(read))));
  }
}

// A process's memory is a file that has no pages at its beginning.
TEST(InputFile, NamesAPageThatCannotBeRead) {
  InputFile file("/proc/self/mem");
  EXPECT_EQ(failure<InputError>([&] { file.read(0, 8, [](std::span<const std::byte>) {}); }),
            "/proc/self/mem: cannot be read at byte 0: Input/output error");
}

TEST(InputFile, NamesWhereAFileHasBecomeShorter) {
  const Scratch scratch;
  scratch.write("x", std::string(10000, 'a'));
  InputFile file(scratch / "x");
  std::filesystem::resize_file(scratch / "x", 1);
  EXPECT_SAYS(failure<InputError>([&] { word_sum(file, 0, file.size()); }),
              "x: ends at byte 1; it had 10000 bytes");
}

}  // namespace
}  // namespace penstock::files
