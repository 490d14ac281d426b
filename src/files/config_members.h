// SPDX-License-Identifier: Apache-2.0
// Members of an object in config.json, taken by name; members left over are unknown settings.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace penstock::files {

std::string shown(const nlohmann::json& value);  // for errors

class Members {
 public:
  // The object outlives the members. All errors are InputErrors that begin with `origin`, including missing
  // members without `otherwise` and values of the wrong kind.
  Members(const nlohmann::json& object, std::string origin);

  bool is_null(const char* key) const;                            // present, as null
  std::int64_t count(const char* key) { return count(key, -1); }  // 1 or more
  std::int64_t count(const char* key, std::int64_t otherwise);
  double number(const char* key) { return number(key, -1); }  // positive
  double number(const char* key, double otherwise);
  bool flag(const char* key, bool otherwise);

  // The member must be missing, null, or one of the given values.
  void require(const char* key, std::initializer_list<nlohmann::json> allowed);

  // nullptr when missing or null.
  const nlohmann::json* take(const char* key);

  // Throws unless the remaining members are false, null, or settings that do not affect a forward pass.
  void refuse_the_rest() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::json& object_;
  std::string origin_;
  std::vector<std::string> taken_;
};

}  // namespace penstock::files
