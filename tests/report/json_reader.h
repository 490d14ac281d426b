// SPDX-License-Identifier: Apache-2.0
// The plainest JSON reader, for checking what is written. Throws std::runtime_error on anything that is not
// JSON.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

struct Json {
  enum class Type { Null, Bool, Number, Text, List, Object } type = Type::Null;
  double number = 0;  // also of true (1) and false (0)
  std::string text;
  std::vector<Json> list;
  std::map<std::string, Json> object;

  const Json& operator[](const std::string& key) const { return object.at(key); }
  const Json& operator[](std::size_t index) const { return list.at(index); }
  bool has(const std::string& key) const { return object.contains(key); }
  std::size_t size() const { return list.size(); }
};

class JsonReader {
 public:
  static Json read(std::string_view text) {
    JsonReader reader{text};
    Json value = reader.value();
    reader.blanks();
    if (!reader.rest_.empty()) throw std::runtime_error("more after the JSON value");
    return value;
  }

 private:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  void blanks() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != rest_.npos)
      rest_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view word) {
    if (!take(word))
      throw std::runtime_error("expected " + std::string(word) + " at " + std::string(rest_.substr(0, 30)));
  }

  Json value() {
    if (take("{")) return object();
    if (take("[")) return list();
    if (take("null")) return {};
    if (take("true")) return {Json::Type::Bool, 1, {}, {}, {}};
    if (take("false")) return {Json::Type::Bool, 0, {}, {}, {}};
    if (!rest_.empty() && rest_.front() == '"') return {Json::Type::Text, 0, text(), {}, {}};
    return number();
  }

  Json object() {
    Json json{Json::Type::Object, 0, {}, {}, {}};
    if (take("}")) return json;
    do {
      blanks();
      std::string key = text();
      need(":");
      if (!json.object.emplace(key, value()).second) throw std::runtime_error("twice: " + key);
    } while (take(","));
    need("}");
    return json;
  }

  Json list() {
    Json json{Json::Type::List, 0, {}, {}, {}};
    if (take("]")) return json;
    do json.list.push_back(value());
    while (take(","));
    need("]");
    return json;
  }

  Json number() {
    const std::string digits(rest_.substr(0, rest_.find_first_not_of("+-.0123456789eE")));
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0')
      throw std::runtime_error("no number at " + std::string(rest_.substr(0, 30)));
    rest_.remove_prefix(digits.size());
    return {Json::Type::Number, value, {}, {}, {}};
  }

  std::string text() {
    need("\"");
    std::string result;
    while (!rest_.empty() && rest_.front() != '"') {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (static_cast<unsigned char>(c) < 0x20) throw std::runtime_error("a control byte in a text");
      if (c != '\\') {
        result += c;
        continue;
      }
      c = rest_.at(0);
      rest_.remove_prefix(1);
      if (c == 'u') {  // tests use it for ASCII alone
        result += static_cast<char>(std::stoi(std::string(rest_.substr(0, 4)), nullptr, 16));
        rest_.remove_prefix(4);
      } else {
        result += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
    }
    need("\"");
    return result;
  }

  std::string_view rest_;
};

inline Json read_json(std::string_view text) { return JsonReader::read(text); }

}  // namespace penstock::report
