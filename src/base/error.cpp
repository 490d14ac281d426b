// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace penstock {

void broken_invariant(const char* condition, const char* reason, const char* file, int line) {
  throw std::logic_error(std::string("internal error: ") + reason + " (" + condition + ", " + file + ":" +
                         std::to_string(line) + ")");
}

}  // namespace penstock
