// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's command line as names and values; all arguments must be known.
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
  // Throws InputError for an argument that Megatron-LM does not have (with the nearest), a value of another
  // kind, and an argument whose effect on time or memory is not predicted (with its name).
  explicit MegatronArguments(const std::string& text);

  bool has(std::string_view name) const { return values_.contains(name); }
  std::string word(std::string_view name, const std::string& otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::int64_t integer(std::string_view name,
                       std::int64_t otherwise) const;  // throws below 1 or above 2^24
  std::int64_t needed(std::string_view name) const;    // throws InputError if missing

  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  void leave_out(const std::string& name) { values_.erase(name); }

  // Given arguments that change time or memory a little, with their effects.
  Words not_counted() const;

 private:
  void take(const std::vector<std::string>& words, std::size_t& i);

  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace penstock::plan
