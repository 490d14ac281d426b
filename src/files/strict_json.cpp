// SPDX-License-Identifier: Apache-2.0
#include "files/strict_json.h"

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {

using nlohmann::json;

json parse_strictly(std::string_view text, std::string_view origin, std::string_view what, int deepest) {
  const auto fail = [&](const std::string& why) {
    throw InputError(std::string(origin) + ": " + std::string(what) + " " + why);
  };
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) fail("is nested too deeply");
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      fail("has the name \"" + printable(parsed.get<std::string>(), 200) + "\" twice");
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    fail("is not JSON: " + printable(error.what(), 200));
  }
  return {};
}

}  // namespace penstock::files
