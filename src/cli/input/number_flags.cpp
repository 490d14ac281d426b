// SPDX-License-Identifier: Apache-2.0
#include "cli/input/number_flags.h"

#include <limits>

#include "base/text.h"

namespace penstock::cli {

namespace {

// Empty if the value is a whole number within the limits.
std::string complaint_about(std::string_view value, int least) {
  constexpr int most = std::numeric_limits<int>::max();
  const auto number = parse_integer(value);
  if (number && *number >= least && *number <= most) return {};
  return "\"" + printable(value) + "\" must be a whole number from " + std::to_string(least) + " to " +
         std::to_string(most);
}

}  // namespace

CLI::Validator whole_number_from(int least) {
  const auto complaint = [=](const std::string& value) {
    const bool octal = value.size() > 1 && value.starts_with('0');  // CLI11 would read 010 as 8
    return octal ? "\"" + printable(value) + "\": leave out the leading zero" : complaint_about(value, least);
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator whole_numbers_from(int least) {
  const auto complaint = [=](const std::string& list) -> std::string {
    for (const std::string_view value : split(list, ',')) {
      std::string found = complaint_about(value, least);
      if (!found.empty()) return found;
    }
    return {};
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator share() {
  const auto complaint = [](const std::string& value) -> std::string {
    const auto number = parse_number(value);
    if (number && *number >= 0 && *number <= 1) return {};
    return "\"" + printable(value) + "\" must be a number from 0 to 1";
  };
  return CLI::Validator(complaint, "");
}

}  // namespace penstock::cli
