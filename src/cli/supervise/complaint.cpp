// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/complaint.h"

#include "base/text.h"

namespace penstock::cli {

std::optional<std::string> failure_of_rank(const std::string& complaint) {
  const std::size_t colon = complaint.find(": "), place = complaint.rfind(" (");
  const bool whole = colon != std::string::npos && place != std::string::npos && colon + 2 < place &&
                     complaint.ends_with(')') && complaint.find("host ", place) != std::string::npos;
  if (!whole || !complaint.starts_with("rank ") || !parse_integer(complaint.substr(5, colon - 5))) return {};
  return complaint.substr(colon + 2, place - colon - 2);
}

}  // namespace penstock::cli
