// SPDX-License-Identifier: Apache-2.0
// Random changes of a text, from single bits to whole words.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::fuzz {

class Mutator {
 public:
  Mutator(unsigned long seed, std::size_t most_bytes) : random_(seed), most_bytes_(most_bytes) {}

  // Words to put into texts: what stands between separators there.
  void learn_words(std::string_view text);

  // One to eight changes; `other` is something to take pieces from.
  std::string mutate(std::string text, std::string_view other);

  // Below n; 0 when n is 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void change(std::string& text, std::string_view other);
  void change_byte(std::string& text);
  void change_number(std::string& text);
  std::string piece(std::string_view text);

  std::mt19937_64 random_;
  std::size_t most_bytes_;
  std::vector<std::string> words_;
};

}  // namespace penstock::fuzz
