// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's command line: words and their values, each argument known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace penstock::plan {

class MegatronArguments {
 public:
  // Throws InputError for an argument that Megatron-LM has not (with the nearest), a value of another kind,
  // and by its name for one that changes time or memory so that nothing is predicted.
  explicit MegatronArguments(const std::string& text);

  bool has(std::string_view name) const { return values_.contains(name); }
  std::string word(std::string_view name, const std::string& otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::int64_t integer(std::string_view name,
                       std::int64_t otherwise) const;  // InputError below 1 or above 2^24
  std::int64_t needed(std::string_view name) const;    // InputError where it is missing

  // Those given that change time or memory a little, with what they do.
  Words not_counted() const;

 private:
  void take(const std::vector<std::string>& words, std::size_t& i);

  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace penstock::plan
