// SPDX-License-Identifier: Apache-2.0
#include "base/typed_value.h"

#include <string>

#include "base/text.h"

namespace penstock {
namespace {

std::string_view without_brackets(std::string_view text) {
  text = trim(text);
  const bool bracketed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  return bracketed ? trim(text.substr(1, text.size() - 2)) : text;
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"';
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

Scalar typed_scalar(std::string_view text) {
  text = trim(text);
  if (is_quoted(text)) return std::string(text.substr(1, text.size() - 2));
  if (text == "true" || text == "false") return text == "true";
  if (const auto whole = parse_integer(text)) return *whole;
  if (const auto real = parse_number(text)) return *real;
  return std::string(text);
}

std::vector<Scalar> typed_list(std::string_view text) {
  text = without_brackets(text);
  std::vector<Scalar> list;
  if (text.empty()) return list;
  for (const std::string_view part : split(text, ',')) list.push_back(typed_scalar(part));
  return list;
}

std::vector<Scalar> typed_words(std::string_view text) {
  std::vector<Scalar> words;
  text = without_brackets(text);
  if (text.empty()) return words;
  for (std::string_view part : split(text, ',')) {
    part = trim(part);
    words.emplace_back(std::string(is_quoted(part) ? part.substr(1, part.size() - 2) : part));
  }
  return words;
}

std::optional<std::string_view> typed_beyond_64_bits(std::string_view text) {
  for (std::string_view part : split(without_brackets(text), ',')) {
    part = trim(part);
    if (is_integer(part) && !parse_integer(part)) return part;
  }
  return std::nullopt;
}

}  // namespace penstock
