// SPDX-License-Identifier: Apache-2.0
#include "train/record/start_mesh.h"

#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSection = "parallel", kLayers = "layers";

// "start" of the last line up to `step` that has one; null without such a line.
Json last_start(std::string_view metrics, std::int64_t step) {
  Json start;
  for (const std::string_view line : split(metrics, '\n')) {
    if (line.find("\"start\"") == line.npos) continue;  // parsing all lines takes longer
    const Json values = files::parse_or_discard(line);
    const bool good = values.is_object() && values.contains("start") && values.contains("step") &&
                      values["step"].is_number_integer();
    if (good && values["step"].get<std::int64_t>() <= step) start = values["start"];
  }
  return start;
}

}  // namespace

MeshOptions mesh_options(run::ParallelOptions options) {
  OptionTable table;
  describe(options, table);
  MeshOptions mesh;
  for (const Option& option : table) {
    if (option.key != kLayers && is_given(option)) mesh.emplace_back(option.key, value_text(option));
  }
  return mesh;
}

std::optional<run::ParallelOptions> mesh_of_step(std::string_view metrics, std::int64_t step,
                                                 std::string_view origin) {
  const Json start = last_start(metrics, step);
  if (!start.is_object() || !start.contains(kMeshOfStart)) return {};
  run::ParallelOptions mesh;
  OptionTable table;
  describe(mesh, table);
  for (const auto& [key, value] : start[kMeshOfStart].items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    assign_text(find_option(table, kSection, key, origin), text, origin);
  }
  return mesh;
}

}  // namespace penstock::train
