// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace penstock {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// Length of the valid UTF-8 sequence at the front; 0 if none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string escaped(unsigned char c, const char* format) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), format, c);
  return text.data();
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  std::size_t least = (word.size() + 2) / 3 + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= std::min(least, candidate.size())) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view quote) {
  const std::optional<std::string_view> like = nearest(word, candidates);
  if (!like) return {};
  return "; did you mean " + std::string(quote) + std::string(*like) + std::string(quote) + "?";
}

std::string instead_of(std::string_view word, std::span<const std::string_view> candidates,
                       std::string_view quote) {
  std::string text = did_you_mean(word, candidates, quote);
  if (!text.empty() || candidates.empty()) return text;
  for (const std::string_view candidate : candidates) {
    text += text.empty() ? "; expected one of " : ", ";
    text += quote;
    text += candidate;
    text += quote;
  }
  return text;
}

std::string number(double value, int decimals) {
  std::array<char, 400> text{};
  // Not printf, which writes the decimal point of the locale: a Python program may have set one.
  const char* end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals).ptr;
  const std::string_view digits(text.data(), end);
  const bool minus_zero =
      digits.starts_with('-') && digits.find_first_not_of("-0.") == std::string_view::npos;
  return std::string(digits.substr(minus_zero ? 1 : 0));
}

std::string two_digits(double value, int decimals) {
  const double size = std::abs(value);
  constexpr int kMost = 12;
  while (size > 0 && decimals < kMost && size * std::pow(10, decimals) < 10) ++decimals;
  return number(value, decimals);
}

std::string exact_number(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0 && std::signbit(value)) return "-0.0";  // parsers read -0 as an integer
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string number_or_name(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return exact_number(value);
}

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      quoted += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {  // TOML forbids the latter
      quoted += escaped(static_cast<unsigned char>(c), "\\u%04x");
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return quoted + "\"";
}

namespace {

// C0, DEL, and C1 as UTF-8 has it: bytes that terminals obey.
bool is_control(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  if (character.size() == 2) return byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  for (std::size_t at = 0; at < std::min(text.size(), limit);) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      shown += character;
    } else {
      for (const char byte : character) shown += escaped(static_cast<unsigned char>(byte), "\\x%02x");
    }
    at += character.size();
  }
  return text.size() > limit ? shown + "..." : shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    shown += printable(text.substr(begin, end - begin), std::string::npos);
    if (end < text.size()) shown += text[end];
    begin = end + 1;
  }
  return shown;
}

std::string json_quote_all(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(json_quote(text));
  return "[" + join(quoted, ",") + "]";
}

std::string percent(double share) { return number(100 * share, 1) + " %"; }

std::string signed_percent(double share) { return (share > 0 ? "+" : "") + percent(share); }

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

}  // namespace penstock
