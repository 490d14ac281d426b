// SPDX-License-Identifier: Apache-2.0
#include "report/html_columns.h"

namespace penstock::report {

void Columns::add(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

void Columns::add_signed(std::int64_t value) {
  add(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

void Columns::add_differences(std::span<const std::int64_t> values) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    add_signed(values[i] - before);
    if (values[i] == before) {
      const std::size_t first = i;
      while (i + 1 < values.size() && values[i + 1] == before) ++i;
      add(i - first);
    }
    before = values[i];
  }
}

std::string Columns::base64() const { return report::base64(bytes_); }

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text += digits[group >> shift & 63];
  }
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  text.replace(text.size() - missing, missing, missing, '=');
  return text;
}

}  // namespace penstock::report
