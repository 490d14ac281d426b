// SPDX-License-Identifier: Apache-2.0
// What a rank that ends tells the other processes: the first failure it knows of.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace penstock::comm {

struct Notice {
  std::int32_t rank = 0;  // of the world, that failed first
  std::int32_t exit_code = 0;
  char reason[1016] = {};  // ends with 0; short enough to be sent without the receiver's help
};

inline Notice make_notice(int rank, Exit exit, const std::string& reason) {
  Notice notice{rank, static_cast<std::int32_t>(exit)};
  reason.copy(notice.reason, sizeof notice.reason - 1);
  return notice;
}

}  // namespace penstock::comm
