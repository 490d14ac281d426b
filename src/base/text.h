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
std::string join(std::span<const std::string> parts, std::string_view separator);

// The whole text as a decimal number, or nothing (signs, blanks, overflow and trailing characters included).
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite numbers only

// The candidate with the smallest edit distance, for "did you mean"; candidates must not be empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// A fixed-point number without trailing surprises: number(0.125, 2) == "0.12" by printf's rounding.
std::string number(double value, int decimals);

// Shortest text that reads back to the same double; "null" when not finite (JSON has no NaN).
std::string exact_number(double value);

// A JSON string literal, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

// Text from outside, safe to print in one line of an error: control bytes and what is no
// UTF-8 escaped, long text shortened after about `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace penstock
