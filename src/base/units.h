// SPDX-License-Identifier: Apache-2.0
// Unit types and their printed forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

using Bytes = std::int64_t;  // exact: byte counts are never floating-point
using Seconds = double;
using Flops = double;  // floating-point operations
using Tokens = std::int64_t;

// For a count in a floating-point formula.
inline double as_double(std::int64_t value) { return static_cast<double>(value); }

inline constexpr Bytes KiB = 1024;
inline constexpr Bytes MiB = 1024 * KiB;
inline constexpr Bytes GiB = 1024 * MiB;

std::string print_bytes(Bytes bytes);        // "512 B", "1.50 MiB", "6.00 GiB"
std::string print_seconds(Seconds seconds);  // "12.3 us", "4.56 ms", "7.89 s", "2 min 05 s"
std::string print_count(double count);       // "950", "12.3 K", "1.02 M", "70.6 G"

// Parses "6 GiB", "80GB", "1.5 MiB", "512 B". Throws InputError for anything else, such as a negative number
// or a missing unit.
Bytes parse_bytes(std::string_view text);

}  // namespace penstock
