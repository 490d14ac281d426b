// SPDX-License-Identifier: Apache-2.0
// Small text helpers shared by messages, parsers and printers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty parts
std::string_view trim(std::string_view text);                                // spaces, tabs, CR
std::size_t utf8_prefix(std::string_view text);                   // bytes before the first that is not UTF-8
std::string_view without_byte_order_mark(std::string_view text);  // UTF-8's, which some programs write
std::string join(std::span<const std::string> parts, std::string_view separator);

// Parses the whole text as a decimal number with an optional "-". Returns nullopt for a "+", spaces, overflow
// or trailing characters.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite numbers only

// The candidate with the smallest edit distance, ignoring case; nullopt if more than about a third of the
// word is wrong.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

// The end of a message about an unknown word: "; did you mean "X"?" with the nearest candidate in `quote`s;
// empty if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view quote = "\"");

// The same, but if no candidate is near: "; expected one of "X", "Y"" with all candidates.
std::string instead_of(std::string_view word, std::span<const std::string_view> candidates,
                       std::string_view quote = "\"");

// A fixed-point number with printf's rounding: number(0.125, 2) == "0.12". Zero has no sign.
std::string number(double value, int decimals);

// The same, with more decimals where a smaller number would have fewer than two digits: two_digits(0.0123, 1)
// == "0.012".
std::string two_digits(double value, int decimals);

// Shortest text that parses back to the same double, also in JSON and TOML; "null" if not finite (JSON has no
// NaN).
std::string exact_number(double value);

// The same for human readers: "nan", "inf" or "-inf" if not finite.
std::string number_or_name(double value);

// A JSON string literal, quotes included. Invalid UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);
std::string json_quote_all(const std::vector<std::string>& texts);  // ["a","b"]

// Makes external text safe for one line of an error message: escapes control bytes and invalid UTF-8, and
// shortens text longer than about `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 60);

// Likewise of any length, with its line breaks and tabs.
std::string printable_lines(std::string_view text);

std::string percent(double share);         // "12.5 %"
std::string signed_percent(double share);  // "+12.5 %"

std::string counted(std::int64_t count, const std::string& what);  // "1 rank", "2 ranks", "2 micro-batches"

}  // namespace penstock
