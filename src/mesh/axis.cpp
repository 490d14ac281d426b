// SPDX-License-Identifier: Apache-2.0
#include "mesh/axis.h"

namespace penstock::mesh {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, 5> names{"tensor", "context", "data", "pipeline", "expert"};
  return names[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Group group) {
  constexpr std::array<std::string_view, kGroups.size()> names{
      "pipeline", "tensor", "context", "replica", "vocabulary", "expert", "expert-replica", "world"};
  return names[static_cast<std::size_t>(group)];
}

std::optional<Group> parse_group(std::string_view name) {
  for (const Group group : kGroups) {
    if (name_of(group) == name) return group;
  }
  return {};
}

}  // namespace penstock::mesh
