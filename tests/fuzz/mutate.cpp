// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <algorithm>
#include <array>

namespace penstock::fuzz {
namespace {

constexpr std::string_view kSeparators = ",;:.()[]{}\"= \t\r\n";
constexpr std::array<std::string_view, 16> kNumbers{"0",
                                                    "1",
                                                    "2",
                                                    "9",
                                                    "255",
                                                    "32767",
                                                    "32768",
                                                    "65536",
                                                    "1048575",
                                                    "1048576",
                                                    "2147483647",
                                                    "4294967296",
                                                    "-1",
                                                    "-0",
                                                    "9223372036854775808",
                                                    "99999999999999999999999999"};
constexpr std::size_t kMostWords = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Mutator::learn_words(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size() && words_.size() < kMostWords;) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    if (end > begin) words_.emplace_back(text.substr(begin, end - begin));
    if (end < text.size()) words_.emplace_back(1, text[end]);
    begin = end + 1;
  }
  std::ranges::sort(words_);
  const auto repeated = std::ranges::unique(words_);
  words_.erase(repeated.begin(), repeated.end());
}

std::string Mutator::mutate(std::string text, std::string_view other) {
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) change(text, other);
  if (text.size() > most_bytes_) text.resize(most_bytes_);
  return text;
}

void Mutator::change(std::string& text, std::string_view other) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = below(std::min<std::size_t>(text.size() - at, 32) + 1);
  switch (below(8)) {
    case 0:
      return change_byte(text);
    case 1:
    case 2:
      return change_number(text);
    case 3:
      text.erase(at, length);
      return;
    case 4:
      text.insert(at, piece(text));
      return;
    case 5:
      text.replace(at, length, piece(other));
      return;
    case 6:
      if (!words_.empty()) text.replace(at, below(2) * length, words_[below(words_.size())]);
      return;
    default:
      std::rotate(text.begin() + at, text.begin() + at + below(length + 1), text.begin() + at + length);
  }
}

void Mutator::change_byte(std::string& text) {
  const auto byte = static_cast<char>(below(256));
  if (text.empty() || below(4) == 0) {
    text.insert(below(text.size() + 1), 1, byte);
  } else if (below(2) == 0) {
    text[below(text.size())] = byte;
  } else {
    text[below(text.size())] ^= static_cast<char>(1u << below(8));
  }
}

// Replaces a number of the text, mostly by a neighbour.
void Mutator::change_number(std::string& text) {
  const auto begin = std::find_if(text.begin() + below(text.size() + 1), text.end(), is_digit);
  const auto end = std::find_if_not(begin, text.end(), is_digit);
  if (begin == end) return;
  std::string number(kNumbers[below(kNumbers.size())]);
  if (below(4) != 0 && end - begin < 9)
    number = std::to_string(std::max(std::stol(std::string(begin, end)) + (below(2) ? 1 : -1), 0L));
  text.replace(begin, end, number);
}

std::string Mutator::piece(std::string_view text) {
  const std::size_t at = below(text.size());
  return std::string(text.substr(at, below(64) + 1));
}

}  // namespace penstock::fuzz
