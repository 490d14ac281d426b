// SPDX-License-Identifier: Apache-2.0
// The message of an ending rank to the other processes: the first failure it received or caused.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace penstock::comm {

struct Notice {
  std::int32_t rank = 0;  // world rank of the first failure
  std::int32_t exit_code = 0;
  char reason[1016] = {};  // zero-terminated; small enough for an eager send
};

inline Notice make_notice(int rank, Exit exit, const std::string& reason) {
  Notice notice{rank, static_cast<std::int32_t>(exit)};
  reason.copy(notice.reason, sizeof notice.reason - 1);
  return notice;
}

}  // namespace penstock::comm
