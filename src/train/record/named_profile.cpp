// SPDX-License-Identifier: Apache-2.0
#include "train/record/named_profile.h"

#include <algorithm>

#include "base/error.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using Json = nlohmann::json;

NamedCall parse_call(const Json& entry, const Json& kernels, const Json& blocks, const std::string& place) {
  const bool sound = entry.is_array() && entry.size() >= 4 &&
                     std::ranges::all_of(entry, [](const Json& part) { return part.is_number(); }) &&
                     entry[0].is_number_unsigned() && entry[1].is_number_unsigned();
  if (!sound) throw InputError(place + ": a call is not [kernel, block, start, end, ...]");
  const auto kernel = entry[0].get<std::size_t>(), block = entry[1].get<std::size_t>();
  if (kernel >= kernels.size() || block >= blocks.size() || !kernels[kernel].is_string() ||
      !blocks[block].is_string()) {
    throw InputError(place + ": a call names a kernel or block that is not in the lists");
  }
  return {blocks[block], kernels[kernel], entry[2].get<double>(), entry[3].get<double>()};
}

}  // namespace

std::vector<NamedProfile> parse_profiles(std::string_view json, std::string_view origin) {
  const Json document = files::parse_or_discard(json);
  const auto list = [&](const char* key) -> const Json& {
    if (!document.is_object() || !document.contains(key) || !document[key].is_array()) {
      throw InputError(std::string(origin) + ": is not a profile; it has no list \"" + key + "\"");
    }
    return document[key];
  };
  const Json &kernels = list("kernels"), &blocks = list("blocks");
  std::vector<NamedProfile> profiles;
  for (const Json& step : list("steps")) {
    const bool sound = step.is_object() && step.contains("step") && step["step"].is_number_integer() &&
                       step.contains("devices") && step["devices"].is_array();
    if (!sound) throw InputError(std::string(origin) + ": a step has no number \"step\" or no \"devices\"");
    NamedProfile& profile = profiles.emplace_back(NamedProfile{.step = step["step"].get<std::int64_t>()});
    const std::string place = std::string(origin) + ": step " + std::to_string(profile.step);
    for (const Json& device : step["devices"]) {
      profile.devices.emplace_back();
      for (const Json& call : device) {
        profile.devices.back().push_back(parse_call(call, kernels, blocks, place));
      }
    }
  }
  return profiles;
}

}  // namespace penstock::train
