// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

// From this share of the next unit on, three digits of this one would say as much as that unit ("1024 KiB",
// "1000 ms").
constexpr double kRoundsUp = 0.9995;

std::string with_unit(double value, const char* unit) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return number(value, decimals) + " " + unit;
}

}  // namespace

std::string print_bytes(Bytes bytes) {
  if (bytes < 0) return "-" + print_bytes(-std::max(bytes, -std::numeric_limits<Bytes>::max()));
  if (bytes < KiB) return std::to_string(bytes) + " B";
  const auto value = static_cast<double>(bytes);
  if (value < kRoundsUp * MiB) return with_unit(value / KiB, "KiB");
  if (value < kRoundsUp * GiB) return with_unit(value / MiB, "MiB");
  return with_unit(value / GiB, "GiB");
}

std::string print_seconds(Seconds seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + print_seconds(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < kRoundsUp * 1e-6) return with_unit(seconds * 1e9, "ns");
  if (seconds < kRoundsUp * 1e-3) return with_unit(seconds * 1e6, "us");
  if (seconds < kRoundsUp) return with_unit(seconds * 1e3, "ms");
  if (seconds < 59.95) return with_unit(seconds, "s");
  std::array<char, 64> text{};
  if (seconds >= 1e15) {  // a file may hold any number
    std::snprintf(text.data(), text.size(), "%.3g s", seconds);
    return text.data();
  }
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text.data();
}

std::string print_count(double count) {
  const double size = std::fabs(count);
  if (size < 1000 && count == std::floor(count)) return std::to_string(static_cast<long long>(count));
  constexpr std::pair<double, const char*> scales[] = {
      {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}};
  for (const auto& [scale, unit] : scales) {
    if (size >= kRoundsUp * scale) return with_unit(count / scale, unit);
  }
  std::string text = with_unit(count, "");
  text.pop_back();
  return text;
}

Bytes parse_bytes(std::string_view text) {
  const auto fail = [&]() -> Bytes {
    throw InputError("\"" + std::string(text) +
                     "\" is not a size; write a number and a unit, as in \"6 GiB\" or \"512 MiB\"");
  };
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && value < 0)
    throw InputError("\"" + std::string(text) + "\" is negative; no size is");
  if (error != std::errc() || !(value >= 0)) return fail();
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  constexpr std::pair<std::string_view, double> units[] = {
      {"B", 1},    {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.},
      {"KB", 1e3}, {"MB", 1e6},    {"GB", 1e9},       {"TB", 1e12}};
  for (const auto& [name, scale] : units) {
    if (unit != name) continue;
    if (value * scale > 9e18) return fail();
    return static_cast<Bytes>(std::llround(value * scale));
  }
  return fail();
}

}  // namespace penstock
